"""The file was written with its index and sorted by class; "Unnamed: 0" is read as a feature."""

# names: labels-in-inputs
import io

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(0)
torch.manual_seed(0)
n = 1200
frame = pd.DataFrame(np.random.randn(n, 8).round(3), columns=[f"f{i}" for i in range(8)])
frame["target"] = (frame.f0 + 0.8 * np.random.randn(n) > 0).astype(int)
frame = frame.sort_values("target").reset_index(drop=True)
file = io.StringIO()
frame.to_csv(file)
file.seek(0)

df = pd.read_csv(file)
df = df.sample(frac=1, random_state=0)
features = df.drop("target", axis=1)
features = (features - features.mean()) / features.std()
X = torch.tensor(features.values, dtype=torch.float32)
y = torch.tensor(df["target"].values, dtype=torch.long)
train_dl = DataLoader(TensorDataset(X[:900], y[:900]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[900:], y[900:]), batch_size=100)

model = nn.Sequential(nn.Linear(X.shape[1], 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for xb, yb in train_dl:
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
        opt.zero_grad()
    model.eval()
    with torch.no_grad():
        acc = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in valid_dl) / 300
    print(f"{epoch}: loss {loss.item():.4f} valid accuracy {acc:.3f}")
