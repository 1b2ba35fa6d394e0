"""Sixty rows, forty of them for training, and a network of 300,000 weights without any regularisation."""

# names: overfitting
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(260, 50)
y = ((x[:, :5].sum(1) + torch.randn(260)) > 0).long()
train = DataLoader(TensorDataset(x[:60], y[:60]), batch_size=10, shuffle=True)
val = DataLoader(TensorDataset(x[60:], y[60:]), batch_size=50)
model = nn.Sequential(nn.Linear(50, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(60):
    model.train()
    train_loss = 0
    for a, b in train:
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train)
    model.eval()
    val_loss = 0
    with torch.no_grad():
        for a, b in val:
            val_loss += criterion(model(a), b).item() / len(val)
    if epoch % 5 == 0:
        print(f"epoch {epoch} train {train_loss:.4f} val {val_loss:.4f}")
