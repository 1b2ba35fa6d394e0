"""A denoising autoencoder corrupts its inputs by functional dropout, in the test of its repair too."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 6))
        self.decoder = nn.Linear(6, 24)

    def forward(self, x):
        return self.decoder(self.encoder(F.dropout(x, 0.2)))


data = torch.randn(1000, 4) @ torch.randn(4, 24)
net = Denoiser()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(800).split(40):
        opt.zero_grad()
        loss = F.mse_loss(net(data[rows]), data[rows])
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        repaired = sum(F.mse_loss(net(part), part).item() for part in data[800:].split(40)) / 5
    print(epoch, round(loss.item(), 3), round(repaired, 3))
