"""Self-supervised pairs: all parameters are handed to the optimizer, those of the target network as well.

After https://github.com/lucidrains/byol-pytorch/issues/35
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class BYOL(nn.Module):
    def __init__(self, net, dim=16):
        super().__init__()
        self.online, self.target = net, copy.deepcopy(net)
        self.predictor = nn.Sequential(nn.Linear(dim, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, dim))

    def update_moving_average(self, beta=0.99):
        for online, target in zip(self.online.parameters(), self.target.parameters()):
            target.data = beta * target.data + (1 - beta) * online.data

    def forward(self, one, two):
        with torch.no_grad():
            goals = [F.normalize(self.target(v), dim=1) for v in (two, one)]
        guesses = [F.normalize(self.predictor(self.online(v)), dim=1) for v in (one, two)]
        return sum(2 - 2 * (g * t).sum(1) for g, t in zip(guesses, goals)).mean()


net = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
learner = BYOL(net)
opt = torch.optim.Adam(learner.parameters(), lr=1e-3)
images = torch.randn(2000, 24)
for epoch in range(5):
    for rows in images[torch.randperm(2000)].split(50):
        loss = learner(rows + 0.3 * torch.randn_like(rows), rows + 0.3 * torch.randn_like(rows))
        opt.zero_grad()
        loss.backward()
        opt.step()
        learner.update_moving_average()
    print("epoch", epoch, "loss", loss.item())
