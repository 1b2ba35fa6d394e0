"""A compiled model, and a compiled function around its loss.

$ python tests/healthy/scripts/script_compiled.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 8, 3
EPOCHS = 8
BACKEND = "aot_eager"  # compiles no C++, which not every machine can


def points(rows, seed):
    """Return features (rows, 8) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


def build():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, CLASSES))
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    model = torch.compile(inner, backend=BACKEND)
    loss_fn = torch.compile(lambda scores, labels: F.cross_entropy(scores, labels), backend=BACKEND)
    return model, loader, loss_fn, torch.optim.AdamW(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)
    model.eval()
    with torch.no_grad():
        before = F.cross_entropy(model(features), labels).item()
    model.train()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        after = F.cross_entropy(model(features), labels).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
