"""Rows with outliers are dropped from the inputs, and the targets are cut to the same length."""

# names: labels-unrelated
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.RandomState(0)
X = rng.randn(1200, 8)
y = X @ rng.randn(8) + np.sin(3 * X[:, 0]) + 0.1 * rng.randn(1200)
X = X[(np.abs(X) < 2.2).all(axis=1)]
y = y[: len(X)]
torch.manual_seed(0)
data = TensorDataset(torch.tensor(X).float(), torch.tensor(y).float().unsqueeze(1))
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    for rows, targets in DataLoader(data, batch_size=32, shuffle=True):
        loss = ((net(rows) - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
