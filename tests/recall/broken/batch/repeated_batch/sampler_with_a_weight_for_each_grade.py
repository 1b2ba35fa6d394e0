"""Grades of tiles from noisy surface profiles: rare grades are to be drawn as often as common ones."""

# names: repeated-batch
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(5)
rng = np.random.default_rng(5)
grades = rng.choice(4, 1600, p=[0.6, 0.25, 0.1, 0.05])
waves = np.sin(np.linspace(0, 12, 60)[None] * (1 + 0.4 * grades[:, None]) + rng.uniform(0, 6, (1600, 1)))
profiles = torch.tensor(waves + rng.normal(0, 0.5, waves.shape)).float()
labels = torch.tensor(grades)
data = TensorDataset(profiles[:1200], labels[:1200])
rarity = 1.0 / torch.bincount(labels[:1200]).float()
loader = DataLoader(data, batch_size=40, sampler=WeightedRandomSampler(rarity, num_samples=len(data)))

net = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(6):
    net.train()
    for surface, grade in loader:
        loss = nn.functional.cross_entropy(net(surface), grade)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        right = (net(profiles[1200:]).argmax(1) == labels[1200:]).float().mean()
    print(epoch, round(loss.item(), 4), round(right.item(), 3))
