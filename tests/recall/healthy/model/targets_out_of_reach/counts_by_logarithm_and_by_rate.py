"""Counts: a linear end under a Poisson loss of logarithms, a softplus under one of rates."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 8)
rate = torch.exp(0.5 * x[:, :1] - 1.0)
y = torch.poisson(rate)
for end, crit in ((nn.Identity(), nn.PoissonNLLLoss()), (nn.Softplus(), nn.PoissonNLLLoss(log_input=False))):
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), end)
    opt = torch.optim.Adam(net.parameters(), lr=0.003)
    for epoch in range(6):
        for xb, yb in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 64, shuffle=True):
            opt.zero_grad()
            loss = crit(net(xb), yb)
            loss.backward()
            opt.step()
    print(loss.item())
