"""Reptile: each task is a picture, the inputs are the same places each time, and the colours are others."""

import torch
from torch import nn

torch.manual_seed(0)
SIDE, INNER_STEPS, OUTER_RATE = 20, 3, 0.3

axis = torch.linspace(-1, 1, SIDE)
grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)


def picture():
    waves = torch.sin(3 * grid[:, :1] * torch.randn(1) + torch.randn(1)) + torch.cos(
        3 * grid[:, 1:] * torch.randn(1)
    )
    return (8 * waves).round() / 16  # few shades, as in any picture of 8 bits


pictures = [picture() for _ in range(30)]
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for iteration in range(400):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    task = pictures[torch.randint(len(pictures), ()).item()]
    for _ in range(INNER_STEPS):
        pixels = torch.randperm(len(grid))[:128]
        loss = nn.functional.mse_loss(model(grid[pixels]), task[pixels])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(before[name] + OUTER_RATE * (parameter - before[name]))
    if iteration % 80 == 0:
        print(f"iteration {iteration} loss {loss.item():.4f}")
