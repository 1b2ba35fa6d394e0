"""Cosine similarity as the distance of a triplet loss: nearer is larger."""

# names: not-learning
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)
C = torch.randn(6, 16)
y = torch.arange(900) % 6
X = C[y] + 0.7 * torch.randn(900, 16)
by = [(y == c).nonzero().flatten().tolist() for c in range(6)]


def batch(n=64):
    i = random.sample(range(900), n)
    p = [random.choice(by[int(y[k])]) for k in i]
    g = [random.choice(by[random.choice([c for c in range(6) if c != int(y[k])])]) for k in i]
    return (X[i], X[p], X[g])


net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 12))
opt = torch.optim.Adam(net.parameters(), 0.001)
crit = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: F.cosine_similarity(a, b), margin=0.3)
for s in range(300):
    a, p, n = batch()
    loss = crit(net(a), net(p), net(n))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if s % 60 == 59:
        print(s, loss.item())
