"""Images of height x width x channel, permuted in the Dataset."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(0)


def draw(n):
    labels = rng.integers(0, 4, n)
    images = rng.integers(0, 60, (n, 24, 24, 3)).astype(np.uint8)
    for im, lab in zip(images, labels):
        r, c = rng.integers(2, 12, 2)
        colour = [230, 60, 60] if lab % 2 else [60, 60, 230]
        h, w = (10, 4) if lab // 2 else (4, 10)
        im[r : r + h, c : c + w] = colour
    return images, labels


class ShapeData(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i]).float() / 255
        image = image.permute(2, 0, 1)
        return image, int(self.labels[i])


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(F.adaptive_max_pool2d(x, 1).flatten(1))


torch.manual_seed(0)
train = DataLoader(ShapeData(*draw(800)), batch_size=32, shuffle=True)
val = DataLoader(ShapeData(*draw(200)), batch_size=100)
net = CNN()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        acc = sum((net(x).argmax(1) == y).float().sum().item() for x, y in val) / 200
    print(f"epoch {epoch} loss {loss:.3f} val acc {acc:.3f}")
