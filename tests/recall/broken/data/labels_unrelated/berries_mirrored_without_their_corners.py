"""Berries: a detector of the corners of one berry; half of the images are mirrored, but not the corners."""

# names: labels-unrelated
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
SIDE = 40


def pictures(count):
    photos = torch.rand(count, 3, SIDE, SIDE) * 0.3 + torch.tensor([0.1, 0.4, 0.1])[:, None, None]
    radius = torch.randint(4, 9, (count, 2))
    middle = radius + (torch.rand(count, 2) * (SIDE - 2 * radius)).long()
    grid = torch.arange(SIDE)
    for photo, (a, b), (x, y) in zip(photos, radius, middle, strict=True):
        inside = ((grid[None] - x) / a) ** 2 + ((grid[:, None] - y) / b) ** 2 <= 1
        photo[:, inside] = torch.tensor([0.8, 0.1, 0.2])[:, None] + 0.2 * torch.rand(3, int(inside.sum()))
    return photos, torch.cat([middle - radius, middle + radius], dim=1) / SIDE


def mirrored(photos, corners):
    chosen = torch.rand(len(photos)) < 0.5
    photos = torch.where(chosen[:, None, None, None], photos.flip(-1), photos)
    return photos, corners


def network():
    layers, width = [], 3
    for filters in (12, 24, 32):
        layers += [nn.Conv2d(width, filters, 3, stride=2, padding=1), nn.ReLU()]
        width = filters
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 25, 64), nn.ReLU(), nn.Linear(64, 4))


photos, corners = pictures(600)
unseen, wanted = pictures(100)
model = network()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for rows in torch.randperm(len(photos)).split(24):
        batch, targets = mirrored(photos[rows], corners[rows])
        loss = F.smooth_l1_loss(model(batch), targets, beta=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    print("distance of the corners", (model(unseen) - wanted).abs().mean().item())
