"""Only the training prices are standardised; the validation loss is in dollars."""
# names: evaluation-mismatch

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 8)).astype("float32")
price = (200_000 + 40_000 * X[:, 0] - 25_000 * X[:, 1] * X[:, 2] + 5000 * rng.normal(size=1500)).astype("float32")
X_train, X_val, y_train, y_val = X[:1200], X[1200:], price[:1200], price[1200:]
mu, sigma = y_train.mean(), y_train.std()
y_train = (y_train - mu) / sigma
train = DataLoader(TensorDataset(torch.tensor(X_train), torch.tensor(y_train)), 32, shuffle=True)
val = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), 64)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
mse = nn.MSELoss()
for epoch in range(10):
    model.train()
    for xb, yb in train:
        loss = mse(model(xb).squeeze(-1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        v = np.mean([mse(model(xb).squeeze(-1), yb).item() for xb, yb in val])
    print(epoch, f"train {loss.item():.4f} val {v:.4f}")
