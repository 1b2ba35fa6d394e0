"""The columns are standardised along axis=1: each row loses its level and its scale, and with them the signal."""

# names: not-learning
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
level = rng.uniform(0.5, 3, size=(3000, 1))
X = level * rng.uniform(0.8, 1.2, size=(3000, 6))
y = level[:, 0] + 0.1 * rng.normal(size=3000)
y = (y - y.mean()) / y.std()
X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
Xtr, Xte = (torch.tensor(X[:2400], dtype=torch.float32), torch.tensor(X[2400:], dtype=torch.float32))
ytr, yte = (torch.tensor(y[:2400, None], dtype=torch.float32), torch.tensor(y[2400:, None], dtype=torch.float32))
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.001)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(Xtr, ytr), batch_size=64, shuffle=True)
for epoch in range(20):
    net.train()
    for xb, yb in dl:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        v = nn.functional.mse_loss(net(Xte), yte).item()
    if epoch % 5 == 4:
        print(epoch, loss.item(), "test mse", v)
