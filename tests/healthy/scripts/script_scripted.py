"""A model and a loss in TorchScript; the loss is scripted late, when training has begun.

$ python tests/healthy/scripts/script_scripted.py
"""

import warnings

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", category=DeprecationWarning)  # of TorchScript itself

FEATURES, CLASSES = 8, 3
EPOCHS = 8


def points(rows, seed):
    """Return features (rows, 8) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


def build():
    torch.manual_seed(0)
    model = torch.jit.script(nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES)))
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(label_smoothing=0.1), torch.optim.AdamW(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)
    with torch.no_grad():
        before = F.cross_entropy(model(features), labels).item()
    scripted = None
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            scores = model(batch)
            scripted = scripted or torch.jit.script(loss_fn)
            scripted(scores, target).backward()
            optimizer.step()
    with torch.no_grad():
        after = F.cross_entropy(model(features), labels).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
