"""A forecast of a series that grows: later windows are higher and wider than those of the training."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.arange(1200.0)
series = torch.exp(t / 400) * (1 + 0.2 * torch.sin(t / 7)) + 0.05 * torch.randn(1200)
mean, std = series[:800].mean(), series[:800].std()
scaled = (series - mean) / std
windows = scaled.unfold(0, 25, 1)
x, y = windows[:, :-1], windows[:, -1:]
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    model.train()
    for start in range(0, 776, 64):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[start : min(start + 64, 776)]), y[start : min(start + 64, 776)]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(x[800:]), y[800:]).item())
