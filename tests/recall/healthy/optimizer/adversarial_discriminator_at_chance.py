"""A discriminator in one call on real and generated rows: at ln 2 when the generator has won."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(discriminator.parameters(), lr=1e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
answer = torch.cat([torch.ones(64, 1), torch.zeros(64, 1)])
for step in range(400):
    real = torch.randn(64, 2) * 0.5
    fake = generator(torch.randn(64, 8))
    d_loss = bce(discriminator(torch.cat([real, fake.detach()])), answer)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = bce(discriminator(fake), torch.ones(64, 1))
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), g_loss.item())
