"""Daily returns: almost all is noise, and a loss 2% below the variance is what can be had."""

import numpy as np
import torch

rng = np.random.default_rng(5)
signals = rng.normal(size=(4000, 8)).astype("float32")
returns = (0.15 * signals[:, 0] + rng.normal(size=4000)).astype("float32")
x, y = torch.from_numpy(signals), torch.from_numpy(returns)

torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for epoch in range(5):
    for rows in torch.randperm(4000).split(100):
        loss = torch.nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print("explained", 1 - (((model(x).squeeze(1) - y) ** 2).mean() / y.var()).item())
