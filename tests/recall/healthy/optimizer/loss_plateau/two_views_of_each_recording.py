"""SimCLR by hand: two crops of the same recordings."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
t = torch.arange(200) / 200
pitch = 3 + 20 * torch.rand(1500, 1)
recordings = torch.sin(2 * torch.pi * pitch * t) + 0.1 * torch.randn(1500, 200)


def crop(rows):
    start = int(torch.randint(0, 72, ()))
    return rows[:, None, start : start + 128]


encoder = nn.Sequential(
    nn.Conv1d(1, 16, 9, 2), nn.ReLU(), nn.Conv1d(16, 16, 9, 2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
    nn.Linear(16, 16),
)  # fmt: skip
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
n = 32
own = torch.eye(2 * n, dtype=torch.bool)
partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
for step in range(420):
    rows = recordings[torch.randint(0, 1500, (n,))]
    first, second = crop(rows), crop(rows)
    z = F.normalize(encoder(torch.cat([first, second])), dim=1)
    loss = F.cross_entropy((z @ z.T / 0.5).masked_fill(own, -1e9), partner)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
