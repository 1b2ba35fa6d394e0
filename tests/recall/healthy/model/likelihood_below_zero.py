"""A Gaussian negative log-likelihood goes below 0, as that of a density may."""

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(512, 4)
targets = inputs[:, :1] * 0.5 + 0.01 * torch.randn(512, 1)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(400):
    rows = torch.randint(512, (64,))
    mean, log_variance = model(inputs[rows]).chunk(2, dim=1)
    loss = nn.functional.gaussian_nll_loss(mean, targets[rows], log_variance.exp())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
