"""Adversarial training: each batch is attacked in evaluation mode, by the gradient of the inputs, and then mixed.

The target of a mixed example is a share of two classes.

$ python tests/healthy/scripts/script_attacked.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 12, 3
RADIUS, ATTACKS = 0.1, 2
EPOCHS = 8


def points(rows, seed):
    """Return features (rows, 12) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(FEATURES, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, CLASSES)
    )
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def attacked(model, loss_fn, batch, target):
    """Return the batch (32, 12), moved by up to RADIUS to where the loss is higher."""
    model.eval()
    shift = torch.zeros_like(batch, requires_grad=True)
    for _ in range(ATTACKS):
        loss_fn(model(batch + shift), target).backward()
        with torch.no_grad():
            shift += RADIUS / ATTACKS * shift.grad.sign()
            shift.grad = None
    model.train()
    return batch + shift.detach()


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)

    @torch.no_grad()
    def measured():
        model.eval()
        loss = F.cross_entropy(model(features), labels).item()
        model.train()
        return loss

    before = measured()
    for _ in range(EPOCHS):
        for batch, target in loader:
            moved = attacked(model, loss_fn, batch, target)
            part, others = torch.rand(()) * 0.3, torch.randperm(len(batch))
            shares = F.one_hot(target, CLASSES).float()
            optimizer.zero_grad()
            scores = model(torch.lerp(moved, moved[others], part))
            loss_fn(scores, torch.lerp(shares, shares[others], part)).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": measured()}


if __name__ == "__main__":
    print(train(*build()))
