"""Mixup: soft targets under cross entropy, the mixed loss never reaches 0."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
centres = torch.randn(5, 24)


def draw(n):
    y = torch.randint(5, (n,))
    return centres[y] + torch.randn(n, 24), y


net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
beta = torch.distributions.Beta(0.4, 0.4)
for step in range(400):
    x, y = draw(64)
    lam, other = beta.sample(), torch.randperm(64)
    soft = F.one_hot(y, 5).float()
    mixed, target = lam * x + (1 - lam) * x[other], lam * soft + (1 - lam) * soft[other]
    loss = F.cross_entropy(net(mixed), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
x, y = draw(1000)
print("clean accuracy", (net(x).argmax(1) == y).float().mean().item())
