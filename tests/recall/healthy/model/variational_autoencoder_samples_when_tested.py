"""The codes of a variational autoencoder are redrawn at each pass, in evaluation too."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.mu, self.logvar = nn.Linear(32, 3), nn.Linear(32, 3)
        self.dec = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


def loss_of(x, out, mu, logvar):
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return F.mse_loss(out, x, reduction="none").sum(1).mean() + kl


data = torch.randn(1000, 3) @ torch.randn(3, 16) + 0.1 * torch.randn(1000, 16)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(10):
    vae.train()
    for rows in torch.randperm(800).split(50):
        opt.zero_grad()
        loss = loss_of(data[rows], *vae(data[rows]))
        loss.backward()
        opt.step()
    vae.eval()
    with torch.no_grad():
        print(epoch, round(loss.item(), 2), round(loss_of(data[800:], *vae(data[800:])).item(), 2))
