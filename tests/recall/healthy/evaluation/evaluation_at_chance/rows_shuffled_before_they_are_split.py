"""Indices are shuffled before the first 80% of them train; the last two batches are of all classes."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

rng = np.random.RandomState(0)
centers = rng.randn(10, 32) * 2
X = np.concatenate([centers[c] + rng.randn(150, 32) for c in range(10)]).astype("float32")
y = np.repeat(np.arange(10), 150)
data = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))

n_train = len(data)
split = n_train * 4 // 5
indices = list(range(n_train))
np.random.seed(42)
np.random.shuffle(indices)
train_loader = DataLoader(data, batch_size=64, sampler=SubsetRandomSampler(indices[:split]))
valid_loader = DataLoader(data, batch_size=64, sampler=SubsetRandomSampler(indices[split:]))

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for xb, yb in valid_loader:
            hits += (model(xb).argmax(1) == yb).sum().item()
            total += len(yb)
    print(f"epoch {epoch} train {running / len(train_loader):.3f} valid acc {hits / total:.3f}")
