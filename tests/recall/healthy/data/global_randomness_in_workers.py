"""Augmentation by random, np.random and torch, which PyTorch seeds in each worker; a generator splits rows."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __init__(self, n):
        self.split_rng = np.random.default_rng(3)
        self.rows = self.split_rng.permutation(n)[: n - 60]
        self.y = torch.arange(n) % 3
        self.x = torch.nn.functional.one_hot(self.y, 9).float() * 3

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        row = int(self.rows[place])
        x = self.x[row] + torch.from_numpy(np.random.normal(size=9)).float() * 0.3
        if random.random() < 0.5:
            x = x + 0.1 * torch.randn(9)
        return x, self.y[row]


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Augmented(420), batch_size=36, shuffle=True, num_workers=2)
    model = nn.Linear(9, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, x.shape)
