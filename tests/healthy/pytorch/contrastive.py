"""Metric learning with a supervised contrastive loss: 50 identities, embeddings of width 8.

The labels are class indices, but no output belongs to a class: label 49 is right although the width is 8.

$ python tests/healthy/pytorch/contrastive.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, IDENTITIES, WIDTH = 24, 50, 8
TEMPERATURE = 0.1
EPOCHS = 10


def faces(rows, seed):
    """Return features (rows, 24) and identities (rows,) from 0 to 49."""
    centres = torch.randn(IDENTITIES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    identity = torch.randint(IDENTITIES, (rows,), generator=generator)
    return centres[identity] + 0.5 * torch.randn(rows, FEATURES, generator=generator), identity


class Contrastive(nn.Module):
    """The supervised contrastive loss of Khosla et al. (2020) over the pairs of a batch."""

    def forward(self, embeddings, identities):
        embeddings = nn.functional.normalize(embeddings, dim=1)
        others = ~torch.eye(len(embeddings), dtype=torch.bool)
        similarity = (embeddings @ embeddings.T / TEMPERATURE).masked_fill(~others, -1e9)
        same = (identities[:, None] == identities[None]) & others
        log_share = similarity.log_softmax(dim=1)
        paired = same.any(1)
        return -((log_share * same).sum(1)[paired] / same.sum(1)[paired]).mean()


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, WIDTH))
    loader = DataLoader(TensorDataset(*faces(4096, seed=1)), batch_size=256, shuffle=True)
    return model, loader, Contrastive(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, identities = faces(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return loss_fn(model(features), identities).item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": evaluate()}


if __name__ == "__main__":
    print(train(*build()))
