"""Normalize gets mean and std of pixels from 0 to 1, as they are after ToTensor."""

import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)
MEAN, STD = torch.tensor([125.3, 123.0, 113.9]) / 255, torch.tensor([63.0, 62.1, 66.7]) / 255


def to_tensor(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div(255)


def transform(image):
    return (to_tensor(image) - MEAN[:, None, None]) / STD[:, None, None]


class Shapes(Dataset):
    def __init__(self, n):
        self.labels = rng.integers(0, 4, n)
        pixels = rng.integers(0, 140, (n, 12, 12, 3), dtype=np.uint8)
        for image, label in zip(pixels, self.labels):
            image[3 * label : 3 * label + 3] += 70
        self.images = [Image.fromarray(image) for image in pixels]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return transform(self.images[i]), int(self.labels[i])


train_loader, test_loader = DataLoader(Shapes(800), 32, shuffle=True), DataLoader(Shapes(200), 50)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 36, 4)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / 200
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {acc:.2f}")
