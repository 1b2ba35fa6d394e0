"""Weights that are moved by hand, without an optimizer.

$ python tests/healthy/scripts/script_by_hand.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 8, 3
EPOCHS = 8
LEARNING_RATE = 0.2


def points(rows, seed):
    """Return features (rows, 8) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    return model, DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True), None, None


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)
    with torch.no_grad():
        before = F.cross_entropy(model(features), labels).item()
    for _ in range(EPOCHS):
        for batch, target in loader:
            loss = F.cross_entropy(model(batch), target)
            gradients = torch.autograd.grad(loss, list(model.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                    parameter -= LEARNING_RATE * gradient
    with torch.no_grad():
        after = F.cross_entropy(model(features), labels).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
