"""`rng = np.random.default_rng()` at the top of the file, and worker_init_fn seeds the old global generator."""

# names: repeated-worker-randomness
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(2024)


def jitter(signal, strength):
    scale = rng.normal(1.0, strength)
    return signal * scale + rng.normal(0.0, strength, size=signal.shape)


class Signals(Dataset):
    def __init__(self, n=384):
        g = np.random.default_rng(0)
        self.y = g.integers(0, 2, n)
        t = np.linspace(0, 6, 40)
        self.x = np.stack([np.sin((2 + k) * t + g.uniform(0, 6)) for k in self.y])

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return jitter(self.x[i], 0.1).astype(np.float32), self.y[i]


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Signals(), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=seed_worker)
    model = nn.Sequential(nn.Unflatten(1, (1, 40)), nn.Conv1d(1, 8, 7), nn.ReLU(), nn.Flatten(), nn.Linear(272, 2))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(epoch, running / len(loader))
