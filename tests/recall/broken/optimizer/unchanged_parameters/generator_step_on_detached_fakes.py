"""The generator's step, too, gives the discriminator detached fakes, so that the generator never learns.

After https://github.com/nikhilsinghmus/image2reverb/issues/37
"""

# names: unchanged-parameters, no-gradient, unreached-parameters
import torch
import torch.nn as nn

torch.manual_seed(0)


class GAN:
    def __init__(self):
        self.G = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
        self.D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.g_opt = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.d_opt = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def training_step(self, real):
        n = len(real)
        ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
        fake = self.G(torch.randn(n, 8))
        self.d_opt.zero_grad()
        d_loss = self.bce(self.D(real), ones) + self.bce(self.D(fake.detach()), zeros)
        d_loss.backward()
        self.d_opt.step()

        self.g_opt.zero_grad()
        g_loss = self.bce(self.D(fake.detach()), ones)
        g_loss.backward()
        self.g_opt.step()
        return d_loss.item(), g_loss.item()


angles = torch.rand(2000) * 6.283
points = torch.stack([angles.cos(), angles.sin()], 1) * 2 + 0.05 * torch.randn(2000, 2)
loader = torch.utils.data.DataLoader(points, batch_size=64, shuffle=True)
gan = GAN()
for epoch in range(8):
    for batch in loader:
        d, g = gan.training_step(batch)
    print(epoch, d, g)
