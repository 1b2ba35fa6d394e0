"""A test of learning rates: the rate rises with each step on purpose, until the loss explodes."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 10)
y = torch.sin(x[:, :1]) + 0.3 * x[:, 1:2]
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))


def find(model, lowest=1e-6, highest=0.3, steps=100):
    trial = copy.deepcopy(model)
    optimizer = torch.optim.SGD(trial.parameters(), lr=lowest)
    seen = []
    for step, (xb, yb) in zip(range(steps), loader):
        for group in optimizer.param_groups:
            group["lr"] = lowest * (highest / lowest) ** (step / (steps - 1))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(trial(xb), yb)
        loss.backward()
        optimizer.step()
        seen.append((loss.item(), group["lr"]))
    return min(seen)[1] / 3


lr = find(model)
print("rate", lr)
optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
for epoch in range(5):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
