"""Contrastive training on two noisy views of each row; then all rows are encoded, and a probe learns from some."""

import torch
from torch import nn

torch.manual_seed(13)
rows = torch.randn(900, 20)
kinds = (rows[:, 0] + rows[:, 1] > 0).long()
encoder = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 8))
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for epoch in range(12):
    for chosen in torch.randperm(900)[:896].split(64):
        views = torch.cat([rows[chosen] + 0.05 * torch.randn(64, 20) for _ in range(2)])
        codes = nn.functional.normalize(encoder(views), dim=1)
        alike = codes @ codes.T / 0.2 - 1e9 * torch.eye(128)
        partner = torch.cat([torch.arange(64, 128), torch.arange(64)])
        loss = nn.functional.cross_entropy(alike, partner)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
encoder.eval()
with torch.no_grad():
    codes = torch.cat([encoder(part) for part in rows.split(100)])
probe = torch.linalg.lstsq(codes[:600], kinds[:600, None].float() - 0.5).solution
print("probe", ((codes[600:] @ probe > 0).squeeze(1) == kinds[600:].bool()).float().mean().item())
