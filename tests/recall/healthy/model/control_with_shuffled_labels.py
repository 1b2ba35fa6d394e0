"""A control experiment: fresh random labels must not be learned, and are not."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(400):
    inputs, labels = torch.randn(64, 16), torch.randint(2, (64,))
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("control: loss", loss.item(), "against ln 2 =", 0.693)
