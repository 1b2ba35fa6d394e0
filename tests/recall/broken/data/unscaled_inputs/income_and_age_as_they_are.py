"""Columns from 0.1 to 100,000 go into the network as they are; SGD at 1e-3 ends in nan or at guessing."""

# names: unscaled-inputs
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(0)
people = pd.DataFrame(
    {
        "income": rng.lognormal(10.5, 0.5, 2000),
        "age": rng.integers(18, 90, 2000),
        "debt_ratio": rng.uniform(0, 1, 2000),
        "accounts": rng.poisson(3, 2000),
    }
)
people["default"] = (
    2.5 * people.debt_ratio - (people.income - 40000) / 30000 + rng.normal(0, 0.5, 2000) > 1
).astype(float)
X_train, X_test, y_train, y_test = train_test_split(
    people.drop(columns="default").values, people["default"].values, test_size=0.25, random_state=0
)
X_train, X_test = torch.FloatTensor(X_train), torch.FloatTensor(X_test)
y_train, y_test = torch.FloatTensor(y_train).unsqueeze(1), torch.FloatTensor(y_test).unsqueeze(1)


class Credit(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.model(x)


torch.manual_seed(0)
net = Credit()
loss_function = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
for epoch in range(30):
    for i in range(0, len(X_train), 50):
        optimizer.zero_grad()
        loss = loss_function(net(X_train[i : i + 50]), y_train[i : i + 50])
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        with torch.no_grad():
            acc = ((net(X_test) > 0).float() == y_test).float().mean()
        print(f"epoch {epoch}: loss {loss.item():.3f} test accuracy {acc:.3f}")
