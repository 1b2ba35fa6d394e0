"""Rare defects of parts from sensor readings; the F1 of each validation batch is averaged."""

# names: misreported-metric
import numpy as np
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
readings = torch.randn(2400, 12)
weights = torch.randn(12)
wear = readings @ weights / weights.norm() + 0.5 * torch.randn(2400)
defect = (wear > 1.6).long()
train = DataLoader(TensorDataset(readings[:1800], defect[:1800]), batch_size=32, shuffle=True)
valid = DataLoader(TensorDataset(readings[1800:], defect[1800:]), batch_size=16)

net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
    net.eval()
    scores = []
    with torch.no_grad():
        for x, y in valid:
            scores.append(f1_score(y, net(x).argmax(dim=1), zero_division=0))
    print(f"epoch {epoch}: F1 {np.mean(scores):.3f}")
