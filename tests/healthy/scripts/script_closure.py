"""LBFGS, whose step calls a closure several times, on all rows at once.

$ python tests/healthy/scripts/script_closure.py
"""

import torch
from torch import nn

FEATURES = 6
STEPS = 15


def measurements(rows, seed):
    """Return features (rows, 6) and targets (rows, 1)."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, FEATURES, generator=generator)
    return features, (torch.sin(2 * features[:, 0]) + features[:, 1] * features[:, 2]).unsqueeze(1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=10, line_search_fn="strong_wolfe")
    return model, measurements(512, seed=1), nn.MSELoss(), optimizer


def train(model, rows, loss_fn, optimizer):
    features, targets = rows
    held_out, right = measurements(256, seed=2)

    def closure():
        optimizer.zero_grad()
        loss = loss_fn(model(features), targets)
        loss.backward()
        return loss

    with torch.no_grad():
        before = loss_fn(model(held_out), right).item()
    for _ in range(STEPS):
        optimizer.step(closure)
    with torch.no_grad():
        after = loss_fn(model(held_out), right).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
