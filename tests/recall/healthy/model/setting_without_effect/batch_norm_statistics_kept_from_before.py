"""Fine-tuning keeps the running statistics of the pretraining: `momentum = 0` once they are known."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def rows(count, classes):
    x, y = torch.randn(count, 1, 24) + 3, torch.randint(0, classes, (count,))
    for row, kind in zip(x, y):
        row[0, 4 * kind : 4 * kind + 4] += 2
    return TensorDataset(x, y)


def train(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
        print(f"epoch {epoch} loss {loss.item():.3f} acc {hits / len(loader.dataset):.3f}")


model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2), nn.BatchNorm1d(16), nn.ReLU(), nn.MaxPool1d(4), nn.Flatten(), nn.Linear(96, 6)
)
train(model, DataLoader(rows(900, 6), batch_size=30, shuffle=True), 4, 2e-3)
for module in model.modules():
    if isinstance(module, nn.BatchNorm1d):
        module.momentum = 0.0
model[-1] = nn.Linear(96, 4)
train(model, DataLoader(rows(400, 4), batch_size=20, shuffle=True), 4, 1e-3)
