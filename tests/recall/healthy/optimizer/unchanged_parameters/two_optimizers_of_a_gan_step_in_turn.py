"""A GAN on a circle; both optimizers step."""

import torch
from torch import nn

torch.manual_seed(0)
LATENT = 8


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.1)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(LATENT, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2)
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.main(x).view(-1)


angles = torch.rand(2000) * 6.2832
real_data = torch.stack([torch.cos(angles), torch.sin(angles)], 1) + 0.05 * torch.randn(2000, 2)
loader = torch.utils.data.DataLoader(real_data, batch_size=64, shuffle=True, drop_last=True)

netG, netD = Generator(), Discriminator()
netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
g_optimizer = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
real_label, fake_label = 1.0, 0.0

for epoch in range(10):
    for real in loader:
        b = real.size(0)
        # (1) Update D network
        netD.zero_grad()
        errD_real = criterion(netD(real), torch.full((b,), real_label))
        fake = netG(torch.randn(b, LATENT))
        errD_fake = criterion(netD(fake.detach()), torch.full((b,), fake_label))
        errD = errD_real + errD_fake
        errD.backward()
        d_optimizer.step()
        # (2) Update G network
        netG.zero_grad()
        fake = netG(torch.randn(b, LATENT))
        errG = criterion(netD(fake), torch.full((b,), real_label))
        errG.backward()
        g_optimizer.step()
    print(f"[{epoch}] Loss_D: {errD.item():.4f} Loss_G: {errG.item():.4f} |fake| {fake.norm(dim=1).mean():.3f}")
