"""The table is transposed before it is standardised: each row loses its level and its scale."""

# names: not-learning, loss-plateau
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(1)
torch.manual_seed(1)
scale = rng.uniform(1, 5, 2000)
X = np.outer(scale, [1.0, 2.0, 3.0, 4.0]) + 0.02 * rng.normal(size=(2000, 4))
y = (scale > 3).astype("int64")
X = X.T
X = ((X - X.mean(0)) / X.std(0)).T
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(net.parameters(), 0.05)
ds = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
for epoch in range(10):
    for a, b in torch.utils.data.DataLoader(ds, 50, shuffle=True):
        loss = nn.functional.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
