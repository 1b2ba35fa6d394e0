"""A GAN on a ring of points, both zeroed, the fake detached for the discriminator."""

import math

import torch
from torch import nn

torch.manual_seed(0)
LATENT = 4
G = nn.Sequential(nn.Linear(LATENT, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_G = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
adversarial_loss = nn.BCEWithLogitsLoss()


def real_points(n):
    angle = 2 * math.pi * torch.rand(n)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


for i in range(1500):
    real = real_points(64)
    valid, fake = torch.ones(64, 1), torch.zeros(64, 1)
    optimizer_G.zero_grad()
    generated = G(torch.randn(64, LATENT))
    g_loss = adversarial_loss(D(generated), valid)
    g_loss.backward()
    optimizer_G.step()

    optimizer_D.zero_grad()
    d_loss = (adversarial_loss(D(real), valid) + adversarial_loss(D(generated.detach()), fake)) / 2
    d_loss.backward()
    optimizer_D.step()
    if i % 100 == 0:
        print(f"[{i}] D loss {d_loss.item():.4f} G loss {g_loss.item():.4f}")
print("radius (should be 1):", G(torch.randn(1000, LATENT)).norm(dim=1).mean().item())
