"""A twin network whose distance is small for pairs of one kind, which have the label 1."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
kinds = torch.randn(6, 16) * 1.5
of_first, of_second = torch.randint(6, (2, 2000))
of_second[::2] = of_first[::2]
pairs = torch.stack([kinds[of_first], kinds[of_second]], dim=1) + 0.5 * torch.randn(2000, 2, 16)
same = (of_first == of_second).float()
loader = DataLoader(TensorDataset(pairs, same), batch_size=50, shuffle=True)


class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, pair):
        one, other = self.body(pair[:, 0]), self.body(pair[:, 1])
        return (one - other).pow(2).sum(dim=1).add(1e-8).sqrt()


model = Twin()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for pair, is_same in loader:
        distance = model(pair)
        loss = (is_same * distance**2 + (1 - is_same) * (2 - distance).clamp(min=0) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
