"""`momentum=None`: the running statistics are the mean of all batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.rand(1200, 3, 12, 12) * 4
y = torch.randint(0, 5, (1200,))
for row, kind in zip(x, y):
    row[:, 2 * kind : 2 * kind + 3] += 2.0


class BasicConv2d(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout, eps=0.001, momentum=None, affine=True)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


model = nn.Sequential(
    BasicConv2d(3, 16),
    BasicConv2d(16, 16),
    nn.MaxPool2d(2),
    BasicConv2d(16, 32),
    nn.Flatten(),
    nn.Linear(32 * 36, 5),
)
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=25, shuffle=True)
test = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=50)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    model.train()
    for bx, by in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(bx), by)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(bx).argmax(1) == by).sum().item() for bx, by in test)
    print(f"epoch {epoch} train loss {loss.item():.3f} test accuracy {right / 200:.3f}")
