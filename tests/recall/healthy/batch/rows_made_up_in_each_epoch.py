"""Both parts of a split draw their rows again in each epoch, by a formula."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)
P = torch.randn(4, 20)


class Toy(Dataset):
    def __len__(self):
        return 600

    def __getitem__(self, i):
        return P[i % 4] + 0.8 * torch.randn(20), i % 4


tr, va = random_split(Toy(), [480, 120])
m = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 4))
o = torch.optim.Adam(m.parameters(), 3e-3)
for ep in range(5):
    m.train()
    for x, y in DataLoader(tr, 32, shuffle=True):
        o.zero_grad()
        loss = nn.functional.cross_entropy(m(x), y)
        loss.backward()
        o.step()
    m.eval()
    with torch.no_grad():
        print(ep, sum((m(x).argmax(1) == y).sum().item() for x, y in DataLoader(va, 64)) / 120)
