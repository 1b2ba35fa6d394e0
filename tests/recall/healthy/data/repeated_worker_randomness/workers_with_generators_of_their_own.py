"""Each worker makes its generator from its own seed."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

torch.manual_seed(0)
CENTRES = 2 * torch.randn(3, 10)


class Augmented(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.labels = torch.randint(3, (512,))

    def __len__(self):
        return 512

    def __getitem__(self, place):
        noise = torch.tensor(self.rng.normal(size=10), dtype=torch.float32)
        return CENTRES[self.labels[place]] + noise, self.labels[place]


def reseed(worker):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


if __name__ == "__main__":
    loader = DataLoader(Augmented(), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=reseed)
    model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(4):
        for inputs, target in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), target)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
