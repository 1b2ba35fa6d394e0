"""Two networks that compete, each with its own optimizer: one makes points, the other tells them from real ones.

Neither loss falls in the end, and neither should: `examine`, which takes one optimizer, has no business here.

$ python tests/healthy/pytorch/watched_two_networks.py
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


class Competing(nn.Module):
    """A maker and a judge. Called with real points it returns the judge's loss, without them the maker's."""

    def __init__(self):
        super().__init__()
        self.maker = nn.Sequential(nn.Linear(NOISE, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))
        self.judge = nn.Sequential(
            nn.Linear(2, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, 1)
        )

    def forward(self, noise, real=None):
        made = self.maker(noise)
        if real is None:
            scores = self.judge(made)
            return nn.functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
        scores = self.judge(torch.cat([real, made.detach()]))
        truth = torch.cat([torch.ones(len(real), 1), torch.zeros(len(made), 1)])
        return nn.functional.binary_cross_entropy_with_logits(scores, truth)


def build():
    torch.manual_seed(0)
    model = Competing()
    loader = DataLoader(ring(2048, seed=1), batch_size=64, shuffle=True)
    settings = {"lr": 1e-3, "betas": (0.5, 0.999)}
    optimizers = [torch.optim.Adam(part.parameters(), **settings) for part in (model.judge, model.maker)]
    return model, loader, None, optimizers


def train(model, loader, loss_fn, optimizers):
    noise = torch.randn(512, NOISE, generator=torch.Generator().manual_seed(2))

    @torch.no_grad()
    def distance():
        """Return how far the made points are from the circle, on average."""
        return (model.maker(noise).norm(dim=1) - 2).abs().mean().item()

    before = distance()
    judging, making = optimizers
    for _ in range(EPOCHS):
        for real in loader:
            judging.zero_grad()
            model(torch.randn(len(real), NOISE), real).backward()
            judging.step()
            making.zero_grad()
            model(torch.randn(len(real), NOISE)).backward()
            making.step()
    return {"loss_before": before, "loss_after": distance()}


if __name__ == "__main__":
    print(train(*build()))
