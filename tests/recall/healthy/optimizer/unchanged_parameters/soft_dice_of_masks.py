"""Segmentation with a soft Dice loss."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
np.random.seed(0)


class Blobs(Dataset):
    def __init__(self, n):
        self.items = []
        grid = np.stack(np.meshgrid(np.arange(24), np.arange(24)), -1)
        for _ in range(n):
            centre, radius = np.random.uniform(6, 18, 2), np.random.uniform(3, 6)
            mask = (((grid - centre) ** 2).sum(-1) < radius**2).astype("float32")
            image = mask * 0.7 + 0.3 * np.random.rand(24, 24).astype("float32")
            self.items.append((image[None], mask[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        image, mask = self.items[index]
        return torch.from_numpy(image).float(), torch.from_numpy(mask)


class UNetLite(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.mid = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(16, 8, 3, padding=1), nn.ReLU())
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(self.up(self.mid(self.down(x)))))


class DiceLoss(nn.Module):
    def forward(self, pred, target, smooth=1.0):
        intersection = (pred * target).sum()
        return 1 - (2 * intersection + smooth) / (pred.sum() + target.sum() + smooth)


model, criterion = UNetLite(), DiceLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(Blobs(200), batch_size=10, shuffle=True)
for epoch in range(5):
    losses = []
    for image, mask in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, np.mean(losses))
