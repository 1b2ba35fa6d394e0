"""The discriminator sees how much the images of its batch differ, as in progressive growing of GANs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2))
        self.score = nn.Linear(33, 1)

    def forward(self, x):
        h = self.body(x)
        deviation = h.std(dim=0).mean().expand(len(h), 1)
        return self.score(torch.cat([h, deviation], 1))


generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
critic = Critic()
g_opt = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()
for epoch in range(3):
    for (real,) in DataLoader(TensorDataset(torch.randn(1024, 4) * 0.5 + 1), 64, shuffle=True):
        fake = generator(torch.randn(64, 8))
        d_loss = bce(critic(real), torch.ones(64, 1)) + bce(critic(fake.detach()), torch.zeros(64, 1))
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        g_loss = bce(critic(fake), torch.ones(64, 1))
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
print("done")
