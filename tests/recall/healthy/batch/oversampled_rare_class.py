"""A weighted sampler draws the 40 rows of a rare class over and over, on purpose."""

import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
x = torch.randn(1240, 8)
y = torch.zeros(1240, dtype=torch.long)
y[:40] = 1
x[:40, 0] += 2.0
weights = torch.where(y == 1, 1 / 40, 1 / 1200)
loader = DataLoader(TensorDataset(x, y), batch_size=40, sampler=WeightedRandomSampler(weights, 1240))
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(6):
    for rows, labels in loader:
        loss = torch.nn.functional.cross_entropy(net(rows), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()
    print(epoch, loss.item())
