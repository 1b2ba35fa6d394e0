"""Permuted images: `__getitem__` seeds numpy with one number on purpose, so that all are permuted alike."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class PermutedDigits(Dataset):
    def __init__(self, count, task):
        rng = np.random.default_rng(1)
        self.task = task
        self.labels = rng.integers(0, 5, count)
        self.images = rng.normal(0, 0.5, (count, 100)).astype("float32")
        for image, label in zip(self.images, self.labels):
            image[20 * label : 20 * label + 20] += 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        np.random.seed(self.task)
        order = np.random.permutation(100)
        return self.images[index][order], int(self.labels[index])


model = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(3):
    for x, y in DataLoader(PermutedDigits(800, task=3), batch_size=40, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
