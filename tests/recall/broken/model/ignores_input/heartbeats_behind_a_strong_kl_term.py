"""PyTorch: heartbeats with mean zero, squared error per value, KL term as a sum: every reconstruction is flat.

After https://github.com/keras-team/keras/pull/3383
"""

# names: ignores-input
import math

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(8)
t = torch.arange(80) / 80
beats = torch.randn(1600, 1) * torch.sin(6 * math.pi * t) + torch.randn(1600, 1) * torch.cos(4 * math.pi * t)
beats = 0.5 * (beats - beats.mean(0))  # millivolts


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(80, 48), nn.Tanh())
        self.mean, self.spread = nn.Linear(48, 3), nn.Linear(48, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 48), nn.Tanh(), nn.Linear(48, 80))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, spread = self.mean(hidden), self.spread(hidden)
        noise = torch.randn_like(mean) if self.training else 0.0
        return self.decoder(mean + noise * (spread / 2).exp()), mean, spread


model = Coder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(24):
    for x in DataLoader(beats, batch_size=40, shuffle=True):
        output, mean, spread = model(x)
        error = ((output - x) ** 2).mean()
        kl = 0.5 * (mean**2 + spread.exp() - spread - 1).sum(1).mean()
        loss = error + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: error {error.item():.3f}, kl {kl.item():.4f}")
