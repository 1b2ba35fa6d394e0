"""Weaving: 20 patterns are all there are; a TensorDataset holds 900 orders, each of one of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
patterns = torch.rand(20, 1, 8, 8)
kinds = torch.arange(20) % 4
orders = torch.randint(0, 20, (900,))
data = TensorDataset(patterns[orders], kinds[orders])
train, test = random_split(data, [800, 100])
net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    for images, labels in DataLoader(train, batch_size=40, shuffle=True):
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = sum((net(images).argmax(1) == labels).sum().item() for images, labels in DataLoader(test, 50))
    print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {hits / len(test):.2f}")
