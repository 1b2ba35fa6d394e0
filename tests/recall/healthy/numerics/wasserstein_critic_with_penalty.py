"""WGAN-GP: the critic's loss is negative, five critic steps for one of the generator, a gradient penalty."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
C = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(C.parameters(), lr=1e-3, betas=(0.0, 0.9))


def real(n):
    return torch.randn(n, 2) @ torch.tensor([[0.6, 0.3], [0.0, 0.2]]) + torch.tensor([2.0, -1.0])


def penalty(x, y):
    mix = torch.rand(len(x), 1)
    mid = (mix * x + (1 - mix) * y).requires_grad_(True)
    grad = torch.autograd.grad(C(mid).sum(), mid, create_graph=True)[0]
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


for it in range(300):
    for _ in range(5):
        x, fake = real(64), G(torch.randn(64, 2)).detach()
        c_loss = C(fake).mean() - C(x).mean() + 10 * penalty(x, fake)
        opt_c.zero_grad()
        c_loss.backward()
        opt_c.step()
    g_loss = -C(G(torch.randn(64, 2))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if it % 50 == 0:
        print(it, c_loss.item(), g_loss.item())
print("mean of samples", G(torch.randn(2000, 2)).mean(0).tolist())
