"""A classifier is tested on clean rows, and then on rows moved against it by their gradients."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
x = torch.randn(1500, 20)
y = (x @ torch.randn(20, 3)).argmax(1)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    model.train()
    for rows in torch.randperm(1000).split(50):
        opt.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        opt.step()

model.eval()
for epsilon in (0.0, 0.5, 1.0):
    attacked = x[1000:].clone().requires_grad_()
    F.cross_entropy(model(attacked), y[1000:]).backward()
    moved = (attacked + epsilon * attacked.grad.sign()).detach()
    with torch.no_grad():
        out = model(moved)
        print(epsilon, F.cross_entropy(out, y[1000:]).item(), (out.argmax(1) == y[1000:]).float().mean().item())
