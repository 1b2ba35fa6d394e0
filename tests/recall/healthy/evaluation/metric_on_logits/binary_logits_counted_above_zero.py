"""BCEWithLogitsLoss and an accuracy that counts logits above 0."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1600, 12)
y = ((x[:, 0] * x[:, 1] + x[:, 2]) > 0).float()
train = DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(x[1280:], y[1280:]), batch_size=64)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss()
optim = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for batch, labels in train:
        optim.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optim.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for batch, labels in val:
            correct += ((model(batch) > 0).float() == labels).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.3f} val acc {correct / 320:.3f}")
