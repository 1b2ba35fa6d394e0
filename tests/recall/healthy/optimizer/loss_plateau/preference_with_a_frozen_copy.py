"""Recommender tuned by preferences, relative to a frozen copy of itself."""

import copy

import torch
from torch import nn

torch.manual_seed(8)
liked = torch.randn(60, 6) @ torch.randn(6, 80)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(60, 16), nn.Embedding(80, 16)
        self.mix = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, pairs):
        return self.mix(torch.cat([self.user(pairs[:, 0]), self.item(pairs[:, 1])], 1)).squeeze(1)


tuned = Scores()
anchor = copy.deepcopy(tuned).requires_grad_(False)
opt = torch.optim.Adam(tuned.parameters(), lr=0.003)
for i in range(300):
    u, a, b = torch.randint(60, (64,)), torch.randint(80, (64,)), torch.randint(80, (64,))
    swap = liked[u, a] < liked[u, b]
    better, worse = torch.stack([u, torch.where(swap, b, a)], 1), torch.stack([u, torch.where(swap, a, b)], 1)
    margin = anchor(better) - anchor(worse)
    loss = torch.log1p(torch.exp(margin - tuned(better) + tuned(worse))).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 50 == 0:
        print(i, round(loss.item(), 4))
