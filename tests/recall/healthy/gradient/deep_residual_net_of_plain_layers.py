"""Twenty residual layers with tanh: small gradients in places, and it learns."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + 0.3 * self.b(torch.tanh(self.a(self.norm(x))))


torch.manual_seed(0)
x = torch.randn(1000, 10)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
train, test = TensorDataset(x[:800], y[:800]), TensorDataset(x[800:], y[800:])
model = nn.Sequential(nn.Linear(10, 24), *[Residual(24) for _ in range(20)], nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for a, b in DataLoader(train, 40, shuffle=True):
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (model(test.tensors[0]).argmax(1) == test.tensors[1]).float().mean().item())
