"""A residual network with He's initial weights in every layer, the last one too."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 40)
y = (x @ torch.randn(40, 10)).argmax(1)


class ResidualNet(nn.Module):
    def __init__(self, width=100, blocks=5):
        super().__init__()
        self.first = nn.Linear(40, width)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(blocks))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.last = nn.Linear(width, 10)

    def forward(self, x):
        h = self.first(x)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            h = h + layer(norm(h).relu())
        return self.last(h)


def he(layer):
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)


model = ResidualNet()
model.apply(he)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
for epoch in range(8):
    total = 0.0
    for rows, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}")
