"""An autoencoder of normal rows; afterwards anomalies, ten times as far out, are to stand out."""

import torch
from torch import nn

torch.manual_seed(1)
basis = torch.randn(4, 16)
normal = torch.randn(1200, 4) @ basis / 2 + 0.1 * torch.randn(1200, 16)
test = torch.cat([normal[1000:], 6 * torch.randn(60, 16)])
train = normal[:1000]
model = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 3), nn.Linear(3, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    for rows in train[torch.randperm(1000)].split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(rows), rows).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    errors = ((model(test) - test) ** 2).mean(1)
print(errors[:200].mean().item(), errors[200:].mean().item())
