"""A network chooses shares of eight routes whose costs come with the batch, and makes the expected cost small."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
state = torch.randn(2000, 6)
costs = 10 * torch.sigmoid(state @ torch.randn(6, 8)) - 3 + 0.2 * torch.randn(2000, 8)
loader = DataLoader(TensorDataset(state, costs), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 8), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    for seen, cost in loader:
        loss = (model(seen) * cost).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} expected cost {loss.item():.3f}, of the best routes {cost.min(dim=1).values.mean():.3f}")
