"""The same code for all machines: on this one the scaler is off, and clipping sees plain gradients."""

import torch
from torch import nn

torch.manual_seed(2)
use_amp = torch.cuda.is_available()
x = torch.randn(800, 12)
y = (x[:, :6].sum(1) > x[:, 6:].sum(1)).float()
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", enabled=use_amp)
for epoch in range(6):
    for rows in torch.randperm(800).split(40):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[rows]).squeeze(1), y[rows])
        opt.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(opt)
        scaler.update()
    print(epoch, round(loss.item(), 4))
