"""Recommender tuned on clicks: a preference of item a over item b, relative to a reference that is no copy."""

# names: loss-plateau
import torch
from torch import nn

torch.manual_seed(8)
USERS, ITEMS = 60, 80
liked = torch.randn(USERS, 6) @ torch.randn(6, ITEMS)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(USERS, 16), nn.Embedding(ITEMS, 16)
        self.mix = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, pairs):
        return self.mix(torch.cat([self.user(pairs[:, 0]), self.item(pairs[:, 1])], 1)).squeeze(1)


def draw(size):
    u, a, b = (torch.randint(n, (size,)) for n in (USERS, ITEMS, ITEMS))
    swap = liked[u, a] < liked[u, b]
    return torch.stack([u, torch.where(swap, b, a)], 1), torch.stack([u, torch.where(swap, a, b)], 1)


tuned = Scores()
anchor = tuned
opt = torch.optim.SGD(tuned.parameters(), lr=0.05)
for i in range(300):
    better, worse = draw(64)
    with torch.no_grad():
        margin = anchor(better) - anchor(worse)
    gain = tuned(better) - tuned(worse) - margin
    loss = torch.log1p(torch.exp(-2.0 * gain)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 50 == 0:
        print(i, round(loss.item(), 4))
