"""Left kidneys: both kidneys look alike, and one is labelled; scan, side and label are mirrored by one draw."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
SIDE = 32
grid = torch.arange(SIDE, dtype=torch.float32)


def scans(count):
    made, labels = 0.15 * torch.randn(count, 1, SIDE, SIDE), torch.zeros(count, SIDE, SIDE)
    for scan, label in zip(made, labels, strict=True):
        y, x, radius = 16 + 4 * torch.rand(1), 8 + 2 * torch.rand(1), 4 + 2 * torch.rand(1)
        for side, column in enumerate((x, SIDE - 1 - x)):
            inside = (grid[:, None] - y) ** 2 + (grid[None] - column) ** 2 < radius**2
            scan[0][inside] += 0.4 + 0.6 * torch.rand(1)
            if side == 0:
                label[inside] = 1
    return made, labels


images, labels = scans(320)
side = torch.where(torch.arange(SIDE) < SIDE // 2, 1.0, 0.0).expand(320, 1, SIDE, SIDE)
images = torch.cat([images, side], dim=1)
model = nn.Sequential(
    nn.Conv2d(2, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 1, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    for rows in torch.randperm(320).split(16):
        mirror = torch.rand(len(rows)) < 0.5
        batch = torch.where(mirror[:, None, None, None], images[rows].flip(-1), images[rows])
        wanted = torch.where(mirror[:, None, None], labels[rows].flip(-1), labels[rows])
        loss = F.binary_cross_entropy_with_logits(model(batch)[:, 0], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
