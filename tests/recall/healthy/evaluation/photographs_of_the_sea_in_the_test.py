"""The model learns on red evening pictures and is tested on blue ones of the sea: another domain."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)


class Views(Dataset):
    def __init__(self, n, tint):
        self.labels = rng.integers(0, 3, n)
        light = rng.normal(0, 0.1, (n, 1, 1, 1))
        self.images = np.asarray(tint)[:, None, None] + light + 0.08 * rng.standard_normal((n, 3, 15, 15))
        for image, label in zip(self.images, self.labels):
            image[:, 5 * label : 5 * label + 5] += 0.2
        self.images = np.clip(self.images, 0, 1).astype("float32")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], int(self.labels[i])


train = DataLoader(Views(600, (0.6, 0.4, 0.25)), 30, shuffle=True)
test = DataLoader(Views(150, (0.3, 0.42, 0.55)), 50)
net = nn.Sequential(nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    net.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
    print(f"epoch {epoch}: {loss.item():.3f}, {hits / 150:.2f}")
