"""An absolute error of prices as they are: the model scales its own answers, and its scores are far from 0.

$ python tests/healthy/scripts/script_prices.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 8
MEAN, SPREAD = 250_000, 80_000
EPOCHS = 10


def houses(rows, seed):
    """Return features (rows, 8) and prices (rows,) in dollars."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, MEAN + SPREAD * features[:, 0] + SPREAD / 3 * features[:, 1] * features[:, 2]


class Priced(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, features):
        return MEAN + SPREAD * self.layers(features).squeeze(1)


def build():
    torch.manual_seed(0)
    model = Priced()
    loader = DataLoader(TensorDataset(*houses(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.L1Loss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, prices = houses(512, seed=2)
    with torch.no_grad():
        before = loss_fn(model(features), prices).item()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    with torch.no_grad():
        after = loss_fn(model(features), prices).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
