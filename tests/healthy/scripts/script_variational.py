"""A variational autoencoder whose loss is a sum over the batch: binary cross entropy, and a divergence by hand.

$ python tests/healthy/scripts/script_variational.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

PIXELS, LATENT = 64, 4
EPOCHS = 12


def bars(rows, seed):
    """Return images (rows, 64) of 8 by 8 pixels from 0 to 1: one bright row or column each, a little blurred."""
    generator = torch.Generator().manual_seed(seed)
    images = 0.1 * torch.rand(rows, 8, 8, generator=generator)
    for image in images:
        place = int(torch.randint(8, (1,), generator=generator))
        image[place if torch.rand(1, generator=generator) < 0.5 else slice(None), place] += 0.8
        image[place] += 0.1
    return images.reshape(rows, PIXELS)


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, 64), nn.ReLU())
        self.mean, self.spread = nn.Linear(64, LATENT), nn.Linear(64, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, PIXELS), nn.Sigmoid())

    def forward(self, images):
        hidden = self.encoder(images)
        mean, spread = self.mean(hidden), self.spread(hidden)
        return self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


def loss_fn(outputs, images):
    made, mean, spread = outputs
    divergence = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
    return F.binary_cross_entropy(made, images, reduction="sum") + divergence


def build():
    torch.manual_seed(0)
    model = Variational()
    loader = DataLoader(bars(1024, seed=1), batch_size=32, shuffle=True)
    return model, loader, loss_fn, torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    held_out = bars(256, seed=2)

    @torch.no_grad()
    def error():
        """Return the mean squared error of the images made again."""
        return F.mse_loss(model(held_out)[0], held_out).item()

    before = error()
    for _ in range(EPOCHS):
        for images in loader:
            optimizer.zero_grad()
            loss_fn(model(images), images).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": error()}


if __name__ == "__main__":
    print(train(*build()))
