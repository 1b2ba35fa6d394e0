"""Three quantiles at once: predictions of (n, 3) against targets of (n, 1), broadcast on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
levels = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, target):
    error = target - pred
    return torch.maximum(levels * error, (levels - 1) * error).mean()


x = torch.rand(2000, 1) * 4
y = torch.sin(x) + (0.1 + 0.2 * x) * torch.randn_like(x)
loader = DataLoader(TensorDataset(x, y), 50, shuffle=True)
net = nn.Sequential(nn.Linear(1, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0
    for a, b in loader:
        loss = pinball(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"{epoch} {total / len(loader):.4f}")
with torch.no_grad():
    print("share below each quantile", (y < net(x)).float().mean(0).tolist())
