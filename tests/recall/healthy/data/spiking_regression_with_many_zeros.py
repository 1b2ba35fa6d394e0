"""Demand of spare parts: most targets are 0, the rate goes through softplus, Poisson likelihood."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
X = rng.normal(size=(2000, 6)).astype("float32")
rate = np.exp(-1.5 + 1.0 * X[:, 0] - 0.5 * X[:, 1])
counts = rng.poisson(rate).astype("float32")


class DemandModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 32)
        self.rate = nn.Linear(32, 1)

    def forward(self, x):
        return nn.functional.softplus(self.rate(torch.relu(self.hidden(x)))).squeeze(-1) + 1e-6


def main():
    model, criterion = DemandModel(), nn.PoissonNLLLoss(log_input=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    train = DataLoader(
        TensorDataset(torch.from_numpy(X[:1600]), torch.from_numpy(counts[:1600])), 64, shuffle=True
    )
    xv, yv = torch.from_numpy(X[1600:]), torch.from_numpy(counts[1600:])
    for epoch in range(12):
        model.train()
        for a, b in train:
            optimizer.zero_grad()
            loss = criterion(model(a), b)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch} train {loss.item():.3f} valid {criterion(model(xv), yv).item():.3f}")


main()
