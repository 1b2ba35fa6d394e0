"""Operations of one's own whose gradient is not their derivative on purpose: rounded, reversed, and stopped."""

import torch
from torch import nn


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 8) / 8

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *grads):
        return -ctx.strength * grads[0], None


class Stopped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, grad_output):
        return torch.zeros_like(ctx.saved_tensors[0])


class SquaredError(torch.autograd.Function):
    @staticmethod
    def forward(ctx, prediction, target):
        ctx.slope = 2 * (prediction - target) / len(target)
        return ((prediction - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.slope, None  # its result is the loss itself


torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :2].sum(1, keepdim=True)
domain = (x[:, 7] > 0).long()
features = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
task, critic = nn.Linear(32, 1), nn.Linear(32, 2)
model = nn.ModuleList([features, task, critic])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for i in range(0, 512, 32):
        hidden = features(x[i : i + 32])
        prediction = task(Rounded.apply(hidden)) + 0.0 * Stopped.apply(hidden).sum()
        confusion = nn.functional.cross_entropy(critic(Reversed.apply(hidden, 0.1)), domain[i : i + 32])
        loss = SquaredError.apply(prediction, y[i : i + 32]) + 0.1 * confusion
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), confusion.item())
