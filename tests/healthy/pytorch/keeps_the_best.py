"""A loop that keeps its best model by `copy.deepcopy`, writes it whole to a file, and averages a second one.

$ python tests/healthy/pytorch/keeps_the_best.py
"""

import copy
import io

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 6


def points(rows, seed):
    """Return points (rows, 2), and for each whether it lies in the inner one of two rings."""
    generator = torch.Generator().manual_seed(seed)
    inner = torch.randint(2, (rows,), generator=generator)
    angle = 2 * torch.pi * torch.rand(rows, generator=generator)
    radius = torch.where(inner == 1, 1.0, 2.0) + 0.2 * torch.randn(rows, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), inner


def build():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=5e-3)


def train(model, loader, loss_fn, optimizer):
    inputs, labels = points(256, seed=2)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))

    @torch.no_grad()
    def evaluate(model):
        loss = loss_fn(model.eval()(inputs), labels).item()
        model.train()
        return loss

    before = lowest = evaluate(model)
    best = file = None
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
            averaged.update_parameters(model)
        loss = evaluate(model)
        if loss < lowest:
            lowest, best, file = loss, copy.deepcopy(model), io.BytesIO()
            torch.save(model, file)
    file.seek(0)
    read = torch.load(file, weights_only=False)
    assert evaluate(best) == evaluate(read) == lowest
    return {"loss_before": before, "loss_after": lowest, "loss_averaged": evaluate(averaged)}


if __name__ == "__main__":
    print(train(*build()))
