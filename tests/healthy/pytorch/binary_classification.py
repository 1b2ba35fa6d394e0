"""Binary classification with one output and BCEWithLogitsLoss: is a point inside the ring?

$ python tests/healthy/pytorch/binary_classification.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 20


def ring(rows, seed):
    """Return points (rows, 2) and targets (rows, 1): 1.0 inside the circle that holds half of them."""
    points = torch.randn(rows, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.norm(dim=1, keepdim=True) < 1.18).float()


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    loader = DataLoader(TensorDataset(*ring(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.BCEWithLogitsLoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    points, targets = ring(512, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model(points)
        return loss_fn(logits, targets).item(), ((logits > 0) == (targets > 0.5)).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
