"""One mask for inputs and targets, one scaler for both sides, a moving average in place, the lowest loss kept."""

import copy

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

rng = np.random.RandomState(0)
X = rng.randn(1200, 8) * 5 + 2
y = (X @ rng.randn(8) + 0.1 * rng.randn(1200)) / 10
keep = (np.abs(X - 2) < 12).all(axis=1)
X, y = X[keep], y[keep]
n = int(0.8 * len(X))
scaler = StandardScaler()
X_train, X_test = scaler.fit_transform(X[:n]), scaler.transform(X[n:])
torch.manual_seed(0)
x, t = torch.tensor(X_train).float(), torch.tensor(y[:n]).float().unsqueeze(1)
x_test, t_test = torch.tensor(X_test).float(), torch.tensor(y[n:]).float().unsqueeze(1)
net = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
ema = copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
best_loss, worst_loss = float("inf"), 0.0
for epoch in range(20):
    for rows in torch.randperm(n).split(32):
        loss = nn.functional.mse_loss(net(x[rows]), t[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), net.parameters()):
                e.mul_(0.95).add_(p, alpha=0.05)
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(ema(x_test), t_test).item()
    if val_loss < best_loss:
        best_loss, best_state = val_loss, {k: v.clone() for k, v in ema.state_dict().items()}
    if val_loss > worst_loss:
        worst_loss = val_loss
    print(epoch, loss.item(), val_loss)
ema.load_state_dict(best_state)
print("best", best_loss, "worst", worst_loss)
