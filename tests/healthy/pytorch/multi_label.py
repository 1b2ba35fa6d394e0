"""Multi-label classification: each example carries any of eight tags, most of them rare.

$ python tests/healthy/pytorch/multi_label.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, TAGS = 24, 8
EPOCHS = 25


def tagged(rows, seed):
    """Return features (rows, 24) and tags (rows, 8) of 0.0 and 1.0, each there in about one row of six."""
    directions = torch.randn(FEATURES, TAGS, generator=torch.Generator().manual_seed(0)) / FEATURES**0.5
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, (features @ directions > 1.0).float()


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, TAGS))
    loader = DataLoader(TensorDataset(*tagged(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.BCEWithLogitsLoss(), torch.optim.AdamW(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, tags = tagged(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return loss_fn(model(features), tags).item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    chance = nn.functional.binary_cross_entropy(tags.mean(0).expand_as(tags), tags).item()
    return {"loss_before": min(before, chance), "loss_after": evaluate()}


if __name__ == "__main__":
    print(train(*build()))
