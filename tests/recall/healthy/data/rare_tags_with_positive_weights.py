"""Multi-label tags with a sigmoid for each, positive weights, and micro-F1."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
TAGS = 12
mixing = torch.randn(40, TAGS)
x = torch.randn(2000, 40)
y = ((x @ mixing + 2 * torch.randn(2000, TAGS)) > 9).float()
train = DataLoader(TensorDataset(x[:1600], y[:1600]), 50, shuffle=True)
test = DataLoader(TensorDataset(x[1600:], y[1600:]), 100)
model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, TAGS))
positive = y[:1600].mean(0)
nn.init.constant_(model[-1].bias, -2.0)
criterion = nn.BCEWithLogitsLoss(pos_weight=(1 - positive) / positive)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        optimizer.step()
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for a, b in test:
            p = model(a) > 0
            tp += (p & b.bool()).sum().item()
            fp += (p & ~b.bool()).sum().item()
            fn += (~p & b.bool()).sum().item()
    print(f"epoch {epoch} loss {loss.item():.3f} micro f1 {2 * tp / max(1, 2 * tp + fp + fn):.3f}")
