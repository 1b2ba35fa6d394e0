"""The scaled features got a new index, the prices kept the one of the shuffled table: rows are joined wrongly.

After https://github.com/NVIDIA/cuml/issues/2579 and https://github.com/alanarazi7/TabSTAR/issues/25
"""

# names: labels-unrelated, not-learning
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(5)
torch.manual_seed(5)

df = pd.DataFrame(
    {
        "area": rng.uniform(40, 200, 1500),
        "rooms": rng.integers(1, 7, 1500),
        "age": rng.uniform(0, 80, 1500),
        "distance": rng.exponential(5, 1500),
    }
)
df["price"] = 2.2 * df.area + 12 * df.rooms - 0.9 * df.age - 6 * df.distance + rng.normal(0, 10, 1500)
df = df.sample(frac=1, random_state=1)

features = ["area", "rooms", "age", "distance"]
X = (df[features] - df[features].mean()) / df[features].std()
data = pd.DataFrame(X.values, columns=features)
data["price"] = (df["price"] - df["price"].mean()) / df["price"].std()
data = data.dropna()

train, test = data.iloc[:1200], data.iloc[1200:]


def to_loader(frame, shuffle):
    x = torch.tensor(frame[features].values, dtype=torch.float32)
    y = torch.tensor(frame["price"].values, dtype=torch.float32).view(-1, 1)
    return DataLoader(TensorDataset(x, y), batch_size=32, shuffle=shuffle)


train_loader, test_loader = to_loader(train, True), to_loader(test, False)
model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history = {"train": [], "test": []}
for epoch in range(15):
    model.train()
    batch_losses = []
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        batch_losses.append(loss.item())
    history["train"].append(np.mean(batch_losses))
    model.eval()
    with torch.no_grad():
        history["test"].append(np.mean([criterion(model(xb), yb).item() for xb, yb in test_loader]))
    print(f"Epoch {epoch + 1:2d} train {history['train'][-1]:.4f} test {history['test'][-1]:.4f}")
