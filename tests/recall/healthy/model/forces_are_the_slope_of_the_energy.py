"""A molecular potential: the loss holds the slope of the output, taken before the gradients are cleared."""

import torch
from torch import nn

torch.manual_seed(0)


def energy(x):
    return (x**2).sum(1) + 0.5 * torch.sin(3 * x).sum(1)


X = (torch.rand(1000, 3) * 2 - 1).requires_grad_(True)
E = energy(X)
F = -torch.autograd.grad(E.sum(), X)[0].detach()
X, E = X.detach(), E.detach()

net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, amsgrad=True)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
for epoch in range(25):
    for idx in torch.randperm(900).split(50):
        x = X[idx].requires_grad_(True)
        e = net(x).squeeze(1)
        f = -torch.autograd.grad(e.sum(), x, create_graph=True)[0]
        loss = 0.1 * nn.functional.mse_loss(e, E[idx]) + nn.functional.mse_loss(f, F[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 6 == 0:
        print(epoch, loss.item(), "error of the forces", (f - F[idx]).abs().mean().item())
