"""Metric learning on triplets: the model takes anchor, positive and negative, and returns its loss itself.

$ python tests/healthy/pytorch/triplets.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, GROUPS = 16, 10
EPOCHS = 10


def triplets(rows, seed):
    """Return anchors, positives of the same group, negatives of another: each (rows, 16)."""
    centres = torch.randn(GROUPS, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    group = torch.randint(GROUPS, (rows,), generator=generator)
    other = (group + torch.randint(1, GROUPS, (rows,), generator=generator)) % GROUPS
    return [centres[g] + 1.5 * torch.randn(rows, FEATURES, generator=generator) for g in (group, group, other)]


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 8))
        self.criterion = nn.TripletMarginLoss(margin=1.0)

    def forward(self, anchor, positive, negative):
        anchor, positive, negative = (self.encoder(points) for points in (anchor, positive, negative))
        return {"loss": self.criterion(anchor, positive, negative), "embedding": anchor}


def build():
    torch.manual_seed(0)
    model = Embedding()
    loader = DataLoader(TensorDataset(*triplets(2048, seed=1)), batch_size=64, shuffle=True)
    return model, loader, None, torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    held_out = triplets(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return model(*held_out)["loss"].item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            model(*batch)["loss"].backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": evaluate()}


if __name__ == "__main__":
    print(train(*build()))
