"""Recommender: cross entropy of all the items that a user has, 40 items, normalised by hand."""

import torch
from torch import nn

torch.manual_seed(0)
U = torch.randn(800, 4)
items = torch.randn(40, 4)
X = (U @ items.T > 1).float()
net = nn.Sequential(nn.Dropout(0.3), nn.Linear(40, 64), nn.Tanh(), nn.Linear(64, 40))
o = torch.optim.Adam(net.parameters(), 0.002)
for epoch in range(6):
    for (a,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), 50, shuffle=True):
        loss = nn.functional.cross_entropy(net(a), a / a.sum(1, keepdim=True).clamp_min(1))
        o.zero_grad()
        loss.backward()
        o.step()
print(loss.item())
