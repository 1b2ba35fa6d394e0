"""A small denoising model: the target is noise, and the loss falls slowly from 1."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
angles = torch.rand(2000) * 6.283
data = torch.stack([angles.cos(), angles.sin()], 1)
for step in range(300):
    x0 = data[torch.randint(2000, (128,))]
    t = torch.rand(128, 1)
    noise = torch.randn_like(x0)
    xt = (1 - t).sqrt() * x0 + t.sqrt() * noise
    loss = nn.functional.mse_loss(net(torch.cat([xt, t], 1)), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
