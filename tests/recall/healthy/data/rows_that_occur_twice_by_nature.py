"""Categorical rows: the space of inputs is small, so test rows occur in the training set as well."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
season, weekday, weather = rng.integers(0, 4, 3000), rng.integers(0, 7, 3000), rng.integers(0, 3, 3000)
rentals = 3 + season * 0.8 - weather * 1.2 + (weekday > 4) * 1.5 + rng.normal(0, 0.4, 3000)
rows = np.stack([season, weekday, weather], 1)
x_train, x_test, y_train, y_test = train_test_split(rows, rentals.astype("float32"), test_size=0.2, random_state=0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, 4) for n in (4, 7, 3)])
        self.mlp = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.mlp(torch.cat([table(x[:, i]) for i, table in enumerate(self.tables)], 1)).squeeze(1)


def loader(x, y, shuffle):
    return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=64, shuffle=shuffle)


model = Net()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    model.train()
    for x, y in loader(x_train, y_train, True):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        errors = [(model(x) - y).abs() for x, y in loader(x_test, y_test, False)]
    print(f"epoch {epoch} mae {torch.cat(errors).mean().item():.3f}")
