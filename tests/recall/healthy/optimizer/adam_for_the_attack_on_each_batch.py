"""Adversarial training: an Adam for the perturbation of each batch, one for the model."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 3)).argmax(1)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(net.parameters(), 0.001)
for epoch in range(4):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 50, shuffle=True):
        delta = torch.zeros_like(a, requires_grad=True)
        od = torch.optim.Adam([delta], lr=0.02)
        for _ in range(2):
            loss = -nn.functional.cross_entropy(net(a + delta), b)
            od.zero_grad()
            loss.backward()
            od.step()
        loss = nn.functional.cross_entropy(net(a + delta.detach()), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
