"""A coordinate network learns one picture: overfitting is the aim, and the batch is always the same."""

import math

import torch
import torch.nn as nn


class Siren(nn.Module):
    def __init__(self, width=48, w0=12.0):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)
        self.w0 = w0
        with torch.no_grad():
            self.first.weight.uniform_(-0.5, 0.5)
            self.second.weight.uniform_(-math.sqrt(6 / width) / w0, math.sqrt(6 / width) / w0)

    def forward(self, x):
        x = torch.sin(self.w0 * self.first(x))
        return self.last(torch.sin(self.w0 * self.second(x)))


torch.manual_seed(0)
side = torch.linspace(-1, 1, 32)
coords = torch.stack(torch.meshgrid(side, side, indexing="ij"), -1).view(-1, 2)
image = (torch.sin(6 * coords[:, :1]) * torch.cos(5 * coords[:, 1:]) > 0).float() * 2 - 1
model = Siren()
optim = torch.optim.Adam(lr=1e-3, params=model.parameters())
for step in range(300):
    loss = ((model(coords) - image) ** 2).mean()
    optim.zero_grad()
    loss.backward()
    optim.step()
    if step % 50 == 0:
        print(f"Step {step}, loss {loss.item():.5f}")
