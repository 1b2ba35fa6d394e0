"""Three folds of buyers: in each, the encoder is fitted on its buyers, and a model of its own learns."""

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import KFold
from sklearn.preprocessing import OrdinalEncoder
from torch import nn

torch.manual_seed(2)
rng = np.random.default_rng(2)
taste = rng.normal(0, 1, 40)
buyer = rng.integers(0, 40, 3000)
table = pd.DataFrame({"buyer": [f"b{n:02d}" for n in buyer], "sum": taste[buyer] + rng.normal(0, 0.1, 3000)})
table = table.sort_values("buyer", ignore_index=True)
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=40)
for fold, (train, test) in enumerate(KFold(3, shuffle=False).split(table)):
    codes = torch.tensor(encoder.fit_transform(table.loc[train, ["buyer"]])[:, 0]).long()
    sums = torch.tensor(table.loc[train, "sum"].to_numpy("float32"))
    model = nn.Sequential(nn.Embedding(41, 8), nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(4):
        for rows in torch.randperm(len(codes)).split(50):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(codes[rows]), sums[rows]).backward()
            optimizer.step()
    unknown = torch.tensor(encoder.transform(table.loc[test, ["buyer"]])[:, 0]).long()
    with torch.no_grad():
        print("fold", fold, "mean guess for other buyers", model(unknown).mean().item())
