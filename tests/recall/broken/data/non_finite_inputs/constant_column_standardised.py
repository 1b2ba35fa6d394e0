"""A column with one value has a standard deviation of 0: standardised it is nan, and so is the loss."""

# names: non-finite-inputs, non-finite-loss
import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
sensors = rng.normal(size=(1000, 9)) * rng.uniform(1, 50, 9) + rng.uniform(-100, 100, 9)
sensors[:, 6] = 21.0  # broken: always room temperature
wear = sensors[:, 0] * 0.02 - sensors[:, 3] * 0.05 + rng.normal(0, 0.2, 1000)

X = (sensors - sensors.mean(axis=0)) / sensors.std(axis=0)
X = torch.tensor(X, dtype=torch.float32)
y = torch.tensor((wear - wear.mean()) / wear.std(), dtype=torch.float32).unsqueeze(1)


def train(model, X, y, epochs=8, batch=50):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        perm = torch.randperm(len(X))
        total = 0.0
        for i in range(0, len(X), batch):
            idx = perm[i : i + batch]
            loss = nn.functional.mse_loss(model(X[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(epoch, total * batch / len(X))


train(nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1)), X, y)
