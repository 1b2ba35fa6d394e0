"""A Swish with a backward of its own returns its derivative, without the gradient that it is given."""

# names: ignored-output-gradient
import torch
import torch.nn as nn
import torch.nn.functional as F


class SwishFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return s + x * s * (1 - s)


class Swish(nn.Module):
    def forward(self, x):
        return SwishFn.apply(x)


torch.manual_seed(0)
X = torch.randn(512, 10)
y = (X[:, 0] * X[:, 1] > 0).long()
model = nn.Sequential(nn.Linear(10, 64), Swish(), nn.Linear(64, 64), Swish(), nn.Linear(64, 2))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    perm = torch.randperm(512)
    for i in range(0, 512, 64):
        idx = perm[i : i + 64]
        loss = F.cross_entropy(model(X[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 0:
        print(epoch, loss.item())
