"""The test table comes from another export, whose columns stand in another order; only the values are taken."""

# names: evaluation-mismatch
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

np.random.seed(1)
torch.manual_seed(1)


def patients(n):
    frame = pd.DataFrame(
        {
            "age": np.random.normal(0.2, 1.0, n),
            "bmi": np.random.gamma(2.0, 1.0, n),
            "glucose": np.random.exponential(2.0, n),
            "pressure": np.random.normal(3.0, 0.5, n),
            "smoker": (np.random.rand(n) < 0.3).astype(float),
            "visits": np.random.poisson(4, n).astype(float),
        }
    )
    score = frame.age + 0.8 * frame.bmi - 0.7 * frame.glucose + 1.5 * frame.smoker
    frame["ill"] = (score > score.median()).astype(int)
    return frame


train_df = patients(1500)
test_df = patients(400)[["glucose", "visits", "age", "smoker", "bmi", "pressure", "ill"]]


def to_dataset(df):
    x = torch.tensor(df.drop(columns="ill").values, dtype=torch.float32)
    y = torch.tensor(df["ill"].values, dtype=torch.float32)
    return TensorDataset(x, y)


train_dl = DataLoader(to_dataset(train_df), batch_size=50, shuffle=True)
test_dl = DataLoader(to_dataset(test_df), batch_size=100)
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = nn.BCEWithLogitsLoss()

for epoch in range(15):
    net.train()
    total = 0.0
    for xb, yb in train_dl:
        loss = loss_fn(net(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        hits = sum(((net(xb).squeeze(1) > 0) == yb.bool()).sum().item() for xb, yb in test_dl)
    print(epoch, round(total / len(train_dl), 4), "test acc", hits / len(test_df))
