"""Monte Carlo dropout after a function has trained the model: 20 passes over the same rows in training mode."""

import torch
from torch import nn

torch.manual_seed(0)


def fit(model, x, y):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
            optimizer.step()


x = torch.rand(500, 3) * 4 - 2
y = torch.sin(x).sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
fit(model, x, y)
asked = torch.rand(40, 3) * 6 - 3
with torch.no_grad():
    drawn = torch.stack([model(asked) for _ in range(20)])
print("uncertainty", drawn.std(0).mean().item())
