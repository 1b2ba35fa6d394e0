"""The dataset returns (anchor, negative, positive), the loss takes (anchor, positive, negative)."""

# names: not-learning
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
random.seed(0)
centers = torch.randn(5, 20)
y = torch.arange(1000) % 5
X = centers[y] + 0.8 * torch.randn(1000, 20)
by = {c: (y == c).nonzero().flatten().tolist() for c in range(5)}


class Triplets(Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        c = int(y[i])
        pos = random.choice(by[c])
        neg = random.choice(by[random.choice([k for k in by if k != c])])
        return (X[i], X[neg], X[pos])


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return nn.functional.normalize(self.f(x), dim=1)


net = Embedder()
crit = nn.TripletMarginLoss(margin=0.5)
opt = torch.optim.Adam(net.parameters(), lr=0.001)
for epoch in range(10):
    tot = 0
    for a, p, n in DataLoader(Triplets(), batch_size=50, shuffle=True):
        opt.zero_grad()
        loss = crit(net(a), net(p), net(n))
        loss.backward()
        opt.step()
        tot += loss.item()
    with torch.no_grad():
        z = net(X)
        d = torch.cdist(z, z)
        d.fill_diagonal_(9)
        acc = (y[d.argmin(1)] == y).float().mean()
    print(epoch, tot / 20, "1-NN accuracy", acc.item())
