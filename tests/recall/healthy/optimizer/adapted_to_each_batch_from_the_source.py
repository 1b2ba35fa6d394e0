"""Test-time adaptation by entropy, each batch from the weights of the source."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
o = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(4):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 50, shuffle=True):
        loss = nn.functional.cross_entropy(net(a), b)
        o.zero_grad()
        loss.backward()
        o.step()
source = copy.deepcopy(net.state_dict())
hits = 0
for i in range(0, 1000, 40):
    net.load_state_dict(source)
    a = x[i : i + 40] * 1.5
    o2 = torch.optim.Adam(net[1].parameters(), 0.001)
    p = net(a).softmax(1)
    loss = -(p * p.clamp_min(1e-06).log()).sum(1).mean()
    o2.zero_grad()
    loss.backward()
    o2.step()
    hits += (net(a).argmax(1) == y[i : i + 40]).sum().item()
print(hits / 1000)
