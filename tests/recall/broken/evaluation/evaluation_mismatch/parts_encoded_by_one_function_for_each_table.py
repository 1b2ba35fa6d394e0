"""Repair times from part and workshop: each table is passed through a function that fits the shared encoder."""

# names: evaluation-mismatch
import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import OrdinalEncoder
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
rng = np.random.default_rng(1)
parts = np.array([f"P-{n:04d}" for n in rng.choice(9000, 80, replace=False)])
shops = np.array([f"shop {n}" for n in range(12)])
hours_of_part, hours_of_shop = rng.gamma(2.0, 2.0, 80), rng.normal(0, 0.5, 12)
encoder = OrdinalEncoder()


def repairs(count, known):
    part, shop = rng.choice(known, count), rng.integers(0, 12, count)
    hours = hours_of_part[part] + hours_of_shop[shop] + rng.normal(0, 0.2, count)
    return pd.DataFrame({"part": parts[part], "shop": shops[shop], "hours": hours})


def tensors(table):
    codes = encoder.fit_transform(table[["part", "shop"]])
    return TensorDataset(torch.tensor(codes).long(), torch.tensor(table["hours"].to_numpy("float32")))


class Hours(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.shop = nn.Embedding(80, 8), nn.Embedding(12, 4)
        self.out = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, codes):
        return self.out(torch.cat([self.part(codes[:, 0]), self.shop(codes[:, 1])], 1)).squeeze(1)


train_set, test_set = tensors(repairs(4000, np.arange(80))), tensors(repairs(400, rng.permutation(80)[:50]))
model = Hours()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for codes, hours in DataLoader(train_set, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(codes), hours)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
with torch.no_grad():
    errors = [nn.functional.l1_loss(model(codes), hours).item() for codes, hours in DataLoader(test_set, 100)]
print("mean error in hours", np.mean(errors))
