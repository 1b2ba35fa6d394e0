"""Weights are cloned, saved to a buffer, swapped with an average, and loaded back; none of them is live."""

import io

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
average = {name: value.detach().clone() for name, value in model.state_dict().items()}
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
best, best_state, buffer = float("inf"), None, io.BytesIO()
for epoch in range(12):
    model.train()
    for rows in torch.randperm(300).split(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        with torch.no_grad():
            for name, value in model.state_dict().items():
                if value.is_floating_point():
                    average[name].mul_(0.9).add_(value, alpha=0.1)
                else:
                    average[name].copy_(value)
    backup = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(average)
    model.eval()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model(x[300:]), y[300:]).item()
    model.load_state_dict(backup)
    if loss < best:
        best, best_state = loss, {name: value.clone() for name, value in average.items()}
        buffer = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
buffer.seek(0)
model.load_state_dict(torch.load(buffer)["model"])
model.load_state_dict(best_state)
print("best", round(best, 4))
