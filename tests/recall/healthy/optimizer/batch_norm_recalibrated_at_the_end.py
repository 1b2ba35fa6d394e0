"""Weights are averaged, and update_bn recomputes the statistics of batch norm in training mode."""

import torch
from torch import nn
from torch.optim.swa_utils import update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = torch.randint(3, (480,))
x = torch.randn(480, 8) + 2 * nn.functional.one_hot(y, 8)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(8, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
saved = []
for epoch in range(6):
    for inputs, target in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), target).backward()
        optimizer.step()
    saved.append([p.detach().clone() for p in model.parameters()])
with torch.no_grad():
    for parameter, values in zip(model.parameters(), zip(*saved[3:])):
        parameter.copy_(torch.stack(values).mean(0))
update_bn(loader, model)
print(sum(p.numel() for p in model.parameters()))
