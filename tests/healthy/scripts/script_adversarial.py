"""Two networks that compete, called apart: the judge's loss is made of two backward passes, as in DCGAN.

$ python tests/healthy/scripts/script_adversarial.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

NOISE, WIDTH = 4, 64
EPOCHS = 20


def ring(rows, seed):
    """Return points (rows, 2) around a circle of radius 2."""
    generator = torch.Generator().manual_seed(seed)
    angle = 2 * torch.pi * torch.rand(rows, generator=generator)
    around = torch.stack([angle.cos(), angle.sin()], dim=1)
    return 2 * around + 0.1 * torch.randn(rows, 2, generator=generator)


def build():
    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(NOISE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
    judge = nn.Sequential(nn.Linear(2, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, 1), nn.Sigmoid())
    settings = {"lr": 1e-3, "betas": (0.5, 0.999)}
    optimizers = [torch.optim.Adam(part.parameters(), **settings) for part in (judge, maker)]
    return (maker, judge), DataLoader(ring(2048, seed=1), batch_size=64, shuffle=True), nn.BCELoss(), optimizers


def train(networks, loader, loss_fn, optimizers):
    maker, judge = networks
    judging, making = optimizers
    noise = torch.randn(512, NOISE, generator=torch.Generator().manual_seed(2))

    @torch.no_grad()
    def distance():
        """Return how far the made points are from the circle, on average."""
        return (maker(noise).norm(dim=1) - 2).abs().mean().item()

    before = distance()
    for _ in range(EPOCHS):
        for real in loader:
            judging.zero_grad()
            truth = torch.ones(len(real))
            loss_fn(judge(real).view(-1), truth).backward()
            made = maker(torch.randn(len(real), NOISE))
            truth.fill_(0)
            loss_fn(judge(made.detach()).view(-1), truth).backward()
            judging.step()
            making.zero_grad()
            truth.fill_(1)
            loss_fn(judge(made).view(-1), truth).backward()
            making.step()
    return {"loss_before": before, "loss_after": distance()}


if __name__ == "__main__":
    print(train(*build()))
