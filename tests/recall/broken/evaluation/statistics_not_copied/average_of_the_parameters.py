"""A moving average follows the parameters of a network with batch norm, and not its buffers.

After https://github.com/CuriousAI/mean-teacher/issues/9
"""

# names: statistics-not-copied
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


def make():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


class EMA:
    def __init__(self, model, decay=0.95):
        self.module = copy.deepcopy(model)
        self.module.eval()
        for p in self.module.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)


def data(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 1, 12, 12) * 4 + 30
    for i in range(n):
        x[i, 0, y[i] * 4 : y[i] * 4 + 4] += 6
    return x, y


x, y = data(384)
xv, yv = data(192)
model = make()
ema = EMA(model)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    model.train()
    for i in range(0, 384, 32):
        loss = F.cross_entropy(model(x[i : i + 32]), y[i : i + 32])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update(model)
    with torch.no_grad():
        acc = (ema.module(xv).argmax(1) == yv).float().mean().item()
    print(epoch, loss.item(), "ema acc", acc)
