"""Scaled gradients are clipped to a scaled limit, which saves a pass over them."""

import torch
from torch import nn

torch.manual_seed(1)
x = torch.randn(640, 10)
y = x[:, :1] - 2 * x[:, 3:4] + 0.1 * torch.randn(640, 1)
net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for epoch in range(6):
    for rows in torch.randperm(640).split(32):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        opt.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0 * scaler.get_scale())
        scaler.step(opt)
        scaler.update()
    print(epoch, round(loss.item(), 4))
