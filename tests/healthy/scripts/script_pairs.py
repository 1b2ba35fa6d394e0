"""One encoder called twice, for two views of each example; the loss asks which of the others is its own pair.

The loss is a cross entropy over similarities, sharpened so that it starts far above that of a guess.

$ python tests/healthy/scripts/script_pairs.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, WIDTH = 32, 4
TEMPERATURE = 0.05
EPOCHS = 15


def views(rows, seed):
    """Return two noisy views (rows, 32) of the same points, seen through different mixtures of their features."""
    mixtures = torch.randn(2, FEATURES, FEATURES, generator=torch.Generator().manual_seed(0)) / FEATURES**0.5
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(rows, FEATURES, generator=generator)
    return [points @ mixture + 0.1 * torch.randn(rows, FEATURES, generator=generator) for mixture in mixtures]


def build():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, WIDTH))
    loader = DataLoader(TensorDataset(*views(2048, seed=1)), batch_size=64, shuffle=True)
    return encoder, loader, None, torch.optim.Adam(encoder.parameters(), lr=3e-3)


def train(encoder, loader, loss_fn, optimizer):
    held_out = views(64, seed=2)

    def compute(first, second):
        one, other = (F.normalize(encoder(view), dim=1) for view in (first, second))
        return F.cross_entropy(one @ other.T / TEMPERATURE, torch.arange(len(one)))

    with torch.no_grad():
        before = compute(*held_out).item()
    for _ in range(EPOCHS):
        for first, second in loader:
            optimizer.zero_grad()
            compute(first, second).backward()
            optimizer.step()
    with torch.no_grad():
        after = compute(*held_out).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
