"""Gradients of eight small batches accumulated for each step, each loss divided by eight.

$ python tests/healthy/pytorch/accumulation.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 16, 4
EPOCHS, BATCHES = 6, 8  # small batches to a step


def points(rows, seed):
    """Return features (rows, 16) and labels (rows,): one centre a class, and noise around it."""
    centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return centres[labels] + torch.randn(rows, FEATURES, generator=generator), labels


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=4, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    inputs, labels = points(512, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model(inputs)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    optimizer.zero_grad()
    for _ in range(EPOCHS):
        for number, (batch, target) in enumerate(loader):
            (loss_fn(model(batch), target) / BATCHES).backward()
            if number % BATCHES == BATCHES - 1:
                optimizer.step()
                optimizer.zero_grad()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
