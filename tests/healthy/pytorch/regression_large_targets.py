"""Regression of prices in dollars, around 300,000, left as they are: the learning rate is chosen to suit.

$ python tests/healthy/pytorch/regression_large_targets.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES = 6
EPOCHS = 40


def houses(rows, seed):
    """Return standardised features (rows, 6) and prices in dollars (rows,)."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, FEATURES, generator=generator)
    worth = torch.tensor([60_000.0, 30_000.0, -20_000.0, 10_000.0, 5_000.0, 0.0])
    noise = 10_000 * torch.randn(rows, generator=generator)
    return features, 300_000 + features @ worth + 15_000 * features[:, 0] * features[:, 1] + noise


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(FEATURES, 64), nn.Tanh())
        self.head = nn.Linear(64, 1)

    def forward(self, features):
        return self.head(self.hidden(features)).squeeze(1)


def build():
    torch.manual_seed(0)
    model = Prices()
    loader = DataLoader(TensorDataset(*houses(1024, seed=1)), batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam(
        [{"params": model.hidden.parameters(), "lr": 1e-3}, {"params": model.head.parameters(), "lr": 300.0}]
    )
    return model, loader, nn.MSELoss(), optimizer


def train(model, loader, loss_fn, optimizer):
    features, prices = houses(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return loss_fn(model(features), prices).item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": evaluate(), "variance": prices.var().item()}


if __name__ == "__main__":
    print(train(*build()))
