"""The gradients are clipped between the backward pass and the step; the norm is logged."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.GRU(8, 32, batch_first=True)
head = nn.Linear(32, 1)
parameters = [*model.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
for step in range(200):
    series = torch.randn(32, 20, 8)
    target = series[:, :, 0].mean(dim=1, keepdim=True)
    _, state = model(series)
    loss = nn.functional.mse_loss(head(state[0]), target)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
print("loss", loss.item(), "norm", norm.item())
