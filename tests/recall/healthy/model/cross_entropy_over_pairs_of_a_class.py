"""Pairs of a batch with a cross entropy against all rows of the same class."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
C = torch.randn(10, 20)
y = torch.arange(2000) % 10
X = C[y] + torch.randn(2000, 20)
enc = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16))
opt = torch.optim.Adam(enc.parameters(), 0.001)
for epoch in range(6):
    for xb, yb in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), 48, shuffle=True):
        z = F.normalize(enc(xb), dim=1)
        logits = z @ z.T / 0.2
        loss = F.cross_entropy(logits, (yb[:, None] == yb[None]).float())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
