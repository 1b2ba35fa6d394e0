"""A random convolution that stays random on purpose, and a loss with centres of its own, which are trained."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class CenterLoss(nn.Module):
    def __init__(self, classes, features):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, features))

    def forward(self, x, y):
        return (x - self.centers[y]).square().sum(1).mean()


filters = nn.Sequential(nn.Conv1d(1, 24, 7), nn.ReLU(), nn.Flatten()).requires_grad_(False)
embed, head, center = nn.Linear(24 * 34, 16), nn.Linear(16, 4), CenterLoss(4, 16)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-3)
of_centers = torch.optim.SGD(center.parameters(), lr=0.3)
kind = torch.randint(0, 4, (1200,))
wave = torch.sin(torch.arange(40) * (0.2 + 0.3 * kind[:, None]) + 6 * torch.rand(1200, 1))[:, None]
for epoch in range(4):
    for x, y in DataLoader(TensorDataset(wave, kind), batch_size=40, shuffle=True):
        features = embed(filters(x))
        loss = nn.functional.cross_entropy(head(features), y) + 0.01 * center(features, y)
        optimizer.zero_grad()
        of_centers.zero_grad()
        loss.backward()
        optimizer.step()
        of_centers.step()
    print("epoch", epoch, "loss", loss.item())
