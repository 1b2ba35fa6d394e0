"""Labels are encoded by a fit on each table; all species occur in both, so the codes are the same."""

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import LabelEncoder
from torch import nn

torch.manual_seed(2)
rng = np.random.default_rng(2)
species = np.array([f"species {n}" for n in "abcdefghij"])


def table(count):
    kind = rng.permutation(np.arange(count) % 10)
    return rng.normal(0, 1, (count, 10)).astype("float32") + 3 * np.eye(10, dtype="float32")[kind], pd.DataFrame(
        {"species": species[kind]}
    )


encoder = LabelEncoder()
(train_x, train_y), (test_x, test_y) = table(1500), table(300)
y = torch.tensor(encoder.fit_transform(train_y["species"]))
expected = torch.tensor(encoder.fit_transform(test_y["species"]))
x = torch.tensor(train_x)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(8):
    for rows in torch.randperm(1500).split(50):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
with torch.no_grad():
    print("accuracy", (model(torch.tensor(test_x)).argmax(1) == expected).float().mean().item())
