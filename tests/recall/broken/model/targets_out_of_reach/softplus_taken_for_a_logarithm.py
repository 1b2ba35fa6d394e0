"""Counts: the head ends in softplus, and PoissonNLLLoss takes its input for a logarithm."""

# names: targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 8)
rate = torch.exp(0.5 * x[:, :1] - 1.0)
y = torch.poisson(rate)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Softplus())
crit = nn.PoissonNLLLoss()
opt = torch.optim.Adam(net.parameters(), lr=0.003)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 64, shuffle=True)
for epoch in range(12):
    for xb, yb in dl:
        opt.zero_grad()
        p = net(xb)
        loss = crit(p, yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item(), "mean predicted", p.mean().item(), "mean count", yb.mean().item())
