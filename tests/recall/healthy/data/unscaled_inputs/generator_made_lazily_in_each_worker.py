"""The dataset makes its generator when a worker first reads from it."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, 3, n)
        self.x = rng.normal(size=(n, 8)) + 3 * np.eye(3, 8)[self.y]
        self.rng = None

    def _generator(self):
        if self.rng is None:
            info = torch.utils.data.get_worker_info()
            self.rng = np.random.default_rng(None if info is None else info.seed)
        return self.rng

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return (self.x[i] + 0.1 * self._generator().normal(size=8)).astype("float32"), self.y[i]


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Noisy(320), 32, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(4):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("done")
