"""One function runs both kinds of epoch, and steps only in training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centers = torch.randn(5, 12)
y = torch.randint(0, 5, (1500,))
x = centers[y] + torch.randn(1500, 12)
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), 40, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), 40)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def run_epoch(loader, training):
    model.train(training)
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(xb)
    return total / len(loader.dataset)


for epoch in range(10):
    train_loss = run_epoch(train_loader, True)
    val_loss = run_epoch(val_loader, False)
    print(f"{epoch}: train {train_loss:.4f} val {val_loss:.4f}")
