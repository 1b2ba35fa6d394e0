"""Churn: the column that is to be predicted is still among the features."""

# names: labels-in-inputs
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(3)
torch.manual_seed(3)
COLUMNS = ["tenure", "monthly", "calls", "age", "churn", "plan"]
n = 2000
table = {
    "tenure": rng.exponential(20, n),
    "monthly": rng.normal(60, 15, n),
    "calls": rng.poisson(2, n),
    "age": rng.integers(18, 80, n),
    "plan": rng.integers(0, 3, n),
}
risk = -0.05 * table["tenure"] + 0.3 * table["calls"] + rng.normal(0, 2, n)
table["churn"] = (risk > 0).astype(int)

features = np.column_stack([table[name] for name in COLUMNS]).astype(np.float32)
features = (features - features.mean(0)) / features.std(0)
labels = table["churn"].astype(np.float32)
order = rng.permutation(n)
train, valid = order[:1600], order[1600:]


class MLP(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def loader(rows, shuffle):
    return DataLoader(
        TensorDataset(torch.from_numpy(features[rows]), torch.from_numpy(labels[rows])), 64, shuffle=shuffle
    )


model = MLP(features.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    for x, y in loader(train, True):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum(((model(x) > 0) == (y > 0.5)).sum().item() for x, y in loader(valid, False))
    print(f"epoch {epoch}: validation accuracy {hits / len(valid):.4f}")
