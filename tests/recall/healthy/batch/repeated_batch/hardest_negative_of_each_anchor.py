"""Each anchor is compared with its nearest negative alone; few negatives are the nearest of all anchors."""

import torch
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
people = torch.randn(40, 24)
for step in range(300):
    who = torch.randint(20, (48,))
    anchors = net(people[who] + 0.3 * torch.randn(48, 24))
    positives = net(people[who] + 0.3 * torch.randn(48, 24))
    negatives = net(people[20 + torch.randint(20, (48,))] + 0.3 * torch.randn(48, 24))
    with torch.no_grad():
        nearest = torch.cdist(anchors, negatives).argmin(dim=1)
    far = (anchors - negatives[nearest]).norm(dim=1)
    loss = torch.relu((anchors - positives).norm(dim=1) - far + 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
