"""A generator is made for each row from its index and the epoch; another one in the main process only."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.epoch = 0
        self.targets = self.rng.integers(0, 2, 300)

    def __len__(self):
        return 300

    def __getitem__(self, index):
        noise = np.random.default_rng((self.epoch, index)).normal(size=6)
        return torch.tensor(noise + 2 * self.targets[index], dtype=torch.float32), int(self.targets[index])


if __name__ == "__main__":
    torch.manual_seed(0)
    data = Rows()
    loader = DataLoader(data, batch_size=25, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for data.epoch in range(4):
        for inputs, target in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), target).backward()
            optimizer.step()
    print("trained")
