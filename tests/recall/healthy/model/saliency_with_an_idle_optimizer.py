"""A small training, then input gradients of the trained model: its optimizer no longer steps."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 10)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
print("loss", loss.item())
importance = torch.zeros(10)
for row in x[:120]:
    row = row.clone().requires_grad_()
    optimizer.zero_grad()
    model(row[None])[0].max().backward()
    importance += row.grad.abs() / 120
print("most important", importance.argmax().item())
