"""Pairs with CosineEmbeddingLoss: targets of -1 and 1 are what this loss takes."""

import torch
import torch.nn as nn

torch.manual_seed(0)
people = torch.randn(30, 20)
tower = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 8))
loss_fn = nn.CosineEmbeddingLoss(margin=0.2)
opt = torch.optim.Adam(tower.parameters(), lr=2e-3)
for step in range(500):
    a = torch.randint(30, (48,))
    same = torch.rand(48) < 0.5
    b = torch.where(same, a, torch.randint(30, (48,)))
    target = torch.where(a == b, 1.0, -1.0)
    left = tower(people[a] + 0.4 * torch.randn(48, 20))
    right = tower(people[b] + 0.4 * torch.randn(48, 20))
    loss = loss_fn(left, right, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, round(loss.item(), 4))
