"""Encoder and decoder are two modules; the optimizer gets the decoder's parameters alone."""

# names: optimizer-misses-parameters
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, stride=2, padding=1)
        self.fc = nn.Linear(6 * 36, 8)

    def forward(self, images):
        return self.fc(torch.relu(self.conv(images)).flatten(1))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 144))

    def forward(self, code):
        return self.layers(code).view(-1, 1, 12, 12)


def sample(n):
    rows = torch.rand(n, 1, 12, 1).round()
    columns = torch.rand(n, 1, 1, 12).round()
    return (rows * columns).float()


torch.manual_seed(0)
encoder, decoder = Encoder(), Decoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=2e-3)
for step in range(200):
    images = sample(32)
    reconstruction = decoder(encoder(images))
    loss = ((reconstruction - images) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
