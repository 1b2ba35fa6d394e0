"""Two towers of a shop: customers and their purchases come from two loaders that shuffle apart.

After https://github.com/sayakpaul/SimSiam-TF/issues/1
"""

# names: loss-plateau
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(3)
tastes = torch.randn(2000, 6)
customers = torch.tanh(tastes @ torch.randn(6, 40)) + 0.1 * torch.randn(2000, 40)
purchases = torch.tanh(tastes @ torch.randn(6, 30)) + 0.1 * torch.randn(2000, 30)
left = DataLoader(customers, batch_size=64, shuffle=True, drop_last=True)
right = DataLoader(purchases, batch_size=64, shuffle=True, drop_last=True)

query = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 16))
item = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam([*query.parameters(), *item.parameters()], lr=1e-3)
for epoch in range(12):
    total = 0.0
    for a, b in zip(left, right):
        scores = F.normalize(query(a), dim=1) @ F.normalize(item(b), dim=1).T / 0.2
        loss = F.cross_entropy(scores, torch.arange(len(a)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(left):.3f}")
