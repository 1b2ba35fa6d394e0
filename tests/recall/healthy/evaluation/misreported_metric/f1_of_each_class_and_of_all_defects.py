"""Kinds of defects from sensor readings; F1 of each kind, and of several thresholds, over all rows."""

import numpy as np
import torch
from sklearn.metrics import f1_score, precision_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
readings = torch.randn(2400, 12)
kinds = ((readings @ torch.randn(12, 3)) / 3.5 + 0.3 * torch.randn(2400, 3) > 0.8).float()
train = DataLoader(TensorDataset(readings[:1800], kinds[:1800]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(readings[1800:], kinds[1800:]), batch_size=100)

net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(5):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        outputs = torch.cat([net(x) for x, _ in valid]).sigmoid().numpy()
    truth = kinds[1800:].int().numpy()
    each = [f1_score(truth[:, kind], outputs[:, kind] > 0.5) for kind in range(3)]
    print(f"epoch {epoch}: F1 {np.round(each, 3)}, mean {np.mean(each):.3f}")
best = max(np.linspace(0.1, 0.9, 17), key=lambda cut: f1_score(truth.ravel(), (outputs > cut).ravel()))
chosen = (outputs > best).ravel()
print(f"best threshold {best:.2f}", precision_score(truth.ravel(), chosen), recall_score(truth.ravel(), chosen))
