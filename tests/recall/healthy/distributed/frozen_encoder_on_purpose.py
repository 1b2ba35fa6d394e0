"""Linear probe: the encoder is pre-trained, then frozen and used under no_grad; only the head learns."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
proto = torch.randn(6, 32)


def batch(n=64):
    y = torch.randint(6, (n,))
    return proto[y] + torch.randn(n, 32), y


encoder = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 12))
decoder = nn.Linear(12, 32)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for _ in range(300):
    x, _ = batch()
    loss = F.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("reconstruction", loss.item())

for p in encoder.parameters():
    p.requires_grad_(False)
encoder.eval()
head = nn.Linear(12, 6)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(300):
    x, y = batch()
    with torch.no_grad():
        z = encoder(x)
    loss = F.cross_entropy(head(z), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
x, y = batch(1000)
print("probe accuracy", (head(encoder(x)).argmax(1) == y).float().mean().item())
