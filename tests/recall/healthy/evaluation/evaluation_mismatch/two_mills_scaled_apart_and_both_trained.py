"""Faults of two mills whose sensors differ: each mill has a scaler of its own, in training and in evaluation."""

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(3)
rng = np.random.default_rng(3)


def mill(gain, offset):
    state = rng.normal(size=(900, 5))
    fault = (state @ np.array([1.2, -0.8, 0.5, 0.0, 0.9]) + rng.normal(0, 0.3, 900) > 0).astype(np.int64)
    return state * gain + offset, fault


parts = []
for gain, offset in ((1.0, 0.0), (40.0, 300.0)):
    sensors, fault = mill(gain, offset)
    scaler = StandardScaler().fit(sensors[:700])
    parts.append([scaler.transform(sensors[:700]), fault[:700], scaler.transform(sensors[700:]), fault[700:]])
x, y, x_held, y_held = (torch.tensor(np.concatenate(part)) for part in zip(*parts, strict=True))
x, x_held = x.float(), x_held.float()

net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(15):
    for rows in torch.randperm(len(x)).split(50):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (net(x_held).argmax(1) == y_held).float().mean()
    print(epoch, round(loss.item(), 4), round(right.item(), 3))
