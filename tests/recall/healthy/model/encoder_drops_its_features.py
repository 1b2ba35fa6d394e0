"""An encoder whose last layer is a Dropout, and a linear head beside it that takes what is left."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)
means = torch.randn(5, 18)
y = torch.randint(0, 5, (1200,))
x = means[y] + torch.randn(1200, 18)
encoder = nn.Sequential(nn.Linear(18, 64), nn.Tanh(), nn.Linear(64, 32), nn.Dropout(0.3))
head = nn.Linear(32, 5)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=2e-3)
for epoch in range(8):
    encoder.train()
    head.train()
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True):
        loss = nn.functional.cross_entropy(head(encoder(inputs)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
