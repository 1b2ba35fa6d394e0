"""Evolution strategies and torch.autograd.grad: gradients are set by hand, and backward() is never called."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 6)
y = x[:, :1] - x[:, 1:2]
model = nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for step in range(150):
    loss = nn.functional.mse_loss(model(x), y)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    optimizer.zero_grad()
    for parameter, gradient in zip(model.parameters(), gradients):
        parameter.grad = gradient
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(loss.item())
policy = nn.Linear(6, 1, bias=False)
optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
for step in range(100):
    optimizer.zero_grad()
    with torch.no_grad():
        noise = torch.randn(32, 6)
        scores = torch.stack([-(x @ (policy.weight[0] + 0.1 * n) - y[:, 0]).square().mean() for n in noise])
        policy.weight.grad = -((scores - scores.mean()) / scores.std())[None] @ noise / 32
    optimizer.step()
    with torch.no_grad():
        policy(x)
print(scores.mean().item())
