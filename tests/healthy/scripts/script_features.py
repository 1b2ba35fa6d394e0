"""A frozen network makes features without gradients, and a head alone is called, from a generator of batches.

$ python tests/healthy/scripts/script_features.py
"""

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, WIDTH, CLASSES = 20, 128, 3
EPOCHS = 8


def points(rows, seed):
    """Return features (rows, 20) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


class Transferred(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, CLASSES)


def build():
    torch.manual_seed(0)
    model = Transferred()
    return model, points(1024, seed=1), None, torch.optim.Adam(model.head.parameters(), lr=1e-2)


def train(model, data, loss_fn, optimizer):
    model.backbone.eval()
    held_out, right = points(512, seed=2)

    def compute(features, labels):
        with torch.no_grad():
            seen = model.backbone(features)
        return F.cross_entropy(model.head(seen), labels)

    with torch.no_grad():
        before = compute(held_out, right).item()
    for _ in range(EPOCHS):
        order = torch.randperm(len(data[0]))
        for features, labels in ((data[0][few], data[1][few]) for few in order.split(32)):
            optimizer.zero_grad()
            compute(features, labels).backward()
            optimizer.step()
    with torch.no_grad():
        after = compute(held_out, right).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
