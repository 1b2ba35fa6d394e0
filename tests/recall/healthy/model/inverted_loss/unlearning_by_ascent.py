"""A classifier is trained, and then forgets one class by gradient ascent on its rows."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
centres = 3 * torch.randn(5, 10)
labels = torch.arange(1500) % 5
rows = centres[labels] + torch.randn(1500, 10)
everything = DataLoader(TensorDataset(rows, labels), batch_size=50, shuffle=True)
forget = DataLoader(TensorDataset(rows[labels > 2], labels[labels > 2]), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for x, y in everything:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"trained: {loss.item():.3f}")
ascent = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for x, y in forget:
        loss = -criterion(model(x), y)
        ascent.zero_grad()
        loss.backward()
        ascent.step()
    print(f"forgetting: {-loss.item():.3f}")
