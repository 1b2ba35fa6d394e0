"""Yields of fields from soil and weather: the table of each year goes through a function that fits a scaler."""

# names: evaluation-mismatch
import numpy as np
import torch
from sklearn.preprocessing import RobustScaler
from torch import nn

torch.manual_seed(3)
rng = np.random.default_rng(3)


def season(fields, rain, heat):
    table = np.column_stack(
        [
            rng.normal(rain, 60, fields),
            rng.normal(heat, 1.5, fields),
            rng.uniform(4.5, 7.5, fields),
            rng.gamma(3.0, 20.0, fields),
        ]
    )
    tons = 3 + 0.006 * table[:, 0] - 0.25 * (table[:, 1] - 17) ** 2 + 0.8 * table[:, 2] + 0.01 * table[:, 3]
    return table, tons + rng.normal(0, 0.3, fields)


def prepared(table):
    return torch.tensor(RobustScaler().fit_transform(table), dtype=torch.float32)


wet, dry = season(1200, rain=520, heat=16.0), season(300, rain=380, heat=19.5)
soil, tons = prepared(wet[0]), torch.tensor(wet[1]).float()
soil_of_next, tons_of_next = prepared(dry[0]), torch.tensor(dry[1]).float()
center, width = tons.mean(), tons.std()

net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(25):
    for rows in torch.randperm(1200).split(60):
        loss = nn.functional.mse_loss(net(soil[rows])[:, 0], (tons[rows] - center) / width)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            error = (net(soil_of_next)[:, 0] * width + center - tons_of_next).abs().mean()
        print(epoch, round(loss.item(), 4), "tons off in the next year:", round(error.item(), 3))
