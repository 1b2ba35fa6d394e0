"""A crowd counter learns a density map, and a second term compares the number of peaks, found with a threshold."""

# names: no-gradient
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
SIDE, CROWDS = 16, 640
people = torch.randint(1, 9, (CROWDS,))
density = torch.zeros(CROWDS, 1, SIDE, SIDE)
for scene, count in zip(density, people.tolist(), strict=True):
    scene[0].view(-1)[torch.randperm(SIDE * SIDE)[:count]] = 1.0
photos = F.avg_pool2d(density, 3, 1, 1) + 0.05 * torch.randn_like(density)
loader = DataLoader(TensorDataset(photos, density, people.float()), batch_size=32, shuffle=True)

counter = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1)
)
optimizer = torch.optim.Adam(counter.parameters(), lr=2e-3)
for epoch in range(8):
    total = 0.0
    for photo, truth, number in loader:
        guess = counter(photo)
        peaks = (guess > 0.5).float().sum((1, 2, 3))
        loss = F.mse_loss(guess, truth) + 0.01 * F.l1_loss(peaks, number)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}")
