"""Missing numbers are -1 in a column of 0 to 1, beside a flag."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
X = rng.uniform(size=(2000, 5))
y = (X[:, 0] + X[:, 1] > 1).astype("float32")
miss = rng.random(2000) < 0.1
X[miss, 2] = -1
X = np.c_[X, miss]
ds = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y)[:, None])
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
o = torch.optim.Adam(net.parameters(), 0.005)
for epoch in range(6):
    for a, b in torch.utils.data.DataLoader(ds, 50, shuffle=True):
        loss = nn.functional.binary_cross_entropy_with_logits(net(a), b)
        o.zero_grad()
        loss.backward()
        o.step()
print(loss.item())
