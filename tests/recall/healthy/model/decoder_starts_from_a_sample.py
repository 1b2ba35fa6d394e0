"""A variational autoencoder of sequences: the first state of its decoder is computed from a sample."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.sin(torch.rand(400, 1, 1) * 3 + torch.linspace(0, 6, 12)[None, :, None])


class SeqVAE(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.GRU(1, 24, batch_first=True)
        s.mu = nn.Linear(24, 4)
        s.lv = nn.Linear(24, 4)
        s.h = nn.Linear(4, 24)
        s.d = nn.GRU(1, 24, batch_first=True)
        s.o = nn.Linear(24, 1)

    def forward(s, x):
        h = s.e(x)[1][-1]
        mu, lv = s.mu(h), s.lv(h)
        z = mu + torch.randn_like(mu) * (lv / 2).exp()
        h0 = torch.tanh(s.h(z))[None]
        return s.o(s.d(torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1), h0)[0]), mu, lv


m = SeqVAE()
opt = torch.optim.Adam(m.parameters(), 3e-3)
for ep in range(8):
    m.train()
    for (a,) in DataLoader(TensorDataset(x[:320]), 32, shuffle=True):
        r, mu, lv = m(a)
        loss = F.mse_loss(r, a) + 1e-3 * -(1 + lv - mu**2 - lv.exp()).sum(1).mean() / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    m.eval()
    with torch.no_grad():
        print(ep, loss.item(), F.mse_loss(m(x[320:])[0], x[320:]).item())
