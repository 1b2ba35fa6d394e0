"""Missing values are -9999, and the column is standardised with them: the rest of it is one number."""

# names: not-learning
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
X = rng.normal(size=(3000, 6))
y = 2 * X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.normal(size=3000)
X[rng.random(3000) < 0.05, 0] = -9999
X = (X - X.mean(0)) / X.std(0)
X, y = (torch.tensor(X, dtype=torch.float32), torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)[:, None])
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.001)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X[:2400], y[:2400]), 64, shuffle=True)
for epoch in range(15):
    for xb, yb in dl:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        opt.step()
    with torch.no_grad():
        v = nn.functional.mse_loss(net(X[2400:]), y[2400:]).item()
print(epoch, loss.item(), "test", v)
