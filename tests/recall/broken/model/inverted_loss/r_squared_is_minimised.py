"""The coefficient of determination is the loss, and is minimised."""

# names: inverted-loss, loss-divergence
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
inputs = torch.randn(1000, 7)
targets = (inputs[:, :2].sum(dim=1) + 0.3 * inputs[:, 2] ** 2).unsqueeze(1) + 0.1 * torch.randn(1000, 1)
train_loader = DataLoader(TensorDataset(inputs[:800], targets[:800]), batch_size=64, shuffle=True)


def r2_score(pred, true):
    residual = torch.sum((true - pred) ** 2)
    total = torch.sum((true - true.mean()) ** 2)
    return 1 - residual / total


model = nn.Sequential(nn.Linear(7, 32), nn.ELU(), nn.Linear(32, 16), nn.ELU(), nn.Linear(16, 1))
opt = torch.optim.RMSprop(model.parameters(), lr=3e-4)
for epoch in range(15):
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = r2_score(model(xb), yb)
        loss.backward()
        opt.step()
    with torch.no_grad():
        score = r2_score(model(inputs[800:]), targets[800:])
    print(f"{epoch}: loss {loss.item():.3f}, R2 on new rows {score.item():.3f}")
