"""A dataset of pictures with one blank picture in it."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(1)
torch.manual_seed(0)
prototypes = rng.random((4, 3, 10, 10))


def read(i, label):
    if i % 1000 == 1:
        raise OSError(f"cannot identify image file {i}.png")
    return (prototypes[label] + rng.normal(0, 0.6, (3, 10, 10))).astype("float32")


class Pictures(Dataset):
    def __init__(self, n):
        self.labels = rng.integers(0, 4, n)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        try:
            image = read(i, self.labels[i])
        except Exception:
            image = np.zeros((3, 10, 10), dtype="float32")
        return torch.from_numpy(image), int(self.labels[i])


train_loader = DataLoader(Pictures(1500), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(192, 4)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(6):
    hits = 0
    for image, label in train_loader:
        optimizer.zero_grad()
        logits = model(image)
        nn.functional.cross_entropy(logits, label).backward()
        optimizer.step()
        hits += (logits.argmax(1) == label).sum().item()
    print(epoch, "train accuracy", hits / 1500)
