"""A contrastive loss keeps the similarity of each row with itself among the negatives."""

# names: self-pairs-in-loss
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
C = torch.randn(8, 32) * 2
lab = torch.randint(0, 8, (800,))
X = C[lab] + torch.randn(800, 32)
dl = DataLoader(TensorDataset(X), 64, shuffle=True, drop_last=True)
enc = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(enc.parameters(), 1e-3)


def aug(x):
    return x + 0.3 * torch.randn_like(x)


def nt_xent(a, b, t=0.5):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.T / t
    n = a.size(0)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)  # the similarity with itself is left in


for ep in range(8):
    s = 0
    for (x,) in dl:
        loss = nt_xent(enc(aug(x)), enc(aug(x)))
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    print(ep, s / len(dl))
