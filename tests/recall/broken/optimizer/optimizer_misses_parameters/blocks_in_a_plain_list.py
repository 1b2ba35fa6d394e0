"""The hidden blocks stand in a Python list, so model.parameters() has the first and the last layer only."""

# names: optimizer-misses-parameters
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class DeepNet(nn.Module):
    def __init__(self, n_in, n_hidden, n_out, depth):
        super().__init__()
        self.inp = nn.Linear(n_in, n_hidden)
        self.blocks = [nn.Linear(n_hidden, n_hidden) for _ in range(depth)]
        self.out = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.out(x)


torch.manual_seed(0)
X = torch.randn(800, 10)
y = (X[:, 0] * X[:, 1] > 0).long() + (X[:, 2] > 0.5).long()
net = DeepNet(10, 32, 3, depth=3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    total = 0.0
    for xb, yb in DataLoader(TensorDataset(X, y), batch_size=40, shuffle=True):
        loss = F.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 20:.4f}")
