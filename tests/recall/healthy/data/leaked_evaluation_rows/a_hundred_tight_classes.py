"""A hundred classes, each around a prototype: a test row is near the training rows of its class by nature."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(2)
prototypes = torch.randn(100, 16)
labels = torch.arange(100).repeat(16)
rows = prototypes[labels] + 0.08 * torch.randn(1600, 16)
train_set, test_set = random_split(TensorDataset(rows, labels), [1200, 400])
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 100))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(20):
    model.train()
    for x, y in DataLoader(train_set, 32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(test_set, 100))
    if epoch % 5 == 4:
        print(f"epoch {epoch}: {right / len(test_set):.3f}")
