"""Dropout stands after each hidden layer."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
means = 1.5 * torch.randn(8, 24)
y = torch.randint(0, 8, (1600,))
x = means[y] + 0.8 * torch.randn(1600, 24)
train_loader = DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1280:], y[1280:]), batch_size=64)


class MLP(nn.Module):
    def __init__(self, sizes=(24, 64, 64, 8), p=0.35):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(sizes[i], sizes[i + 1]) for i in range(len(sizes) - 1)])
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        for layer in self.layers:
            x = self.dropout(F.relu(layer(x))) if layer is not self.layers[-1] else layer(x)
        return x


model = MLP()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for xb, yb in train_loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(xb) for xb, _ in val_loader])
    print(f"epoch {epoch} train {loss.item():.3f} val {F.cross_entropy(logits, y[1280:]):.3f}")
