"""The seed of each worker comes from torch, another one in each epoch."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed())


class Panoramas(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        self.x = rng.normal(size=(count, 16)).astype("float32")
        self.y = (self.x[:, :4].sum(1) > 0).astype("int64")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        stretch = np.random.uniform(0.5, 2.0)
        jitter = np.random.normal(0, 0.3, 16)
        return (self.x[i] * stretch + jitter).astype("float32"), self.y[i]


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Panoramas(800), batch_size=20, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())
