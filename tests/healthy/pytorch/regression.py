"""Regression of a smooth function of eight features, targets about 0 with standard deviation 1.

$ python tests/healthy/pytorch/regression.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 8
EPOCHS = 20


def measurements(rows, seed):
    """Return features (rows, 8) and targets (rows, 1)."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, FEATURES, generator=generator)
    signal = torch.sin(2 * features[:, 0]) + features[:, 1] * features[:, 2] + 0.5 * features[:, 3]
    noise = 0.1 * torch.randn(rows, generator=generator)
    return features, ((signal + noise) / 1.4).unsqueeze(1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1))
    loader = DataLoader(TensorDataset(*measurements(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, targets = measurements(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return loss_fn(model(features), targets).item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": evaluate()}


if __name__ == "__main__":
    print(train(*build()))
