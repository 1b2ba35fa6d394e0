"""A GAN with two optimizers: each network's gradients are clipped by value before its own step."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_value_

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for step in range(200):
    angle = torch.rand(64) * 6.2832
    real = torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(64, 2)
    fake = generator(torch.randn(64, 8))
    d_loss = bce(critic(real), torch.ones(64, 1)) + bce(critic(fake.detach()), torch.zeros(64, 1))
    opt_d.zero_grad()
    d_loss.backward()
    clip_grad_value_(critic.parameters(), 0.1)
    opt_d.step()
    g_loss = bce(critic(fake), torch.ones(64, 1))
    opt_g.zero_grad()
    g_loss.backward()
    clip_grad_value_(generator.parameters(), 0.1)
    opt_g.step()
print(d_loss.item(), g_loss.item())
