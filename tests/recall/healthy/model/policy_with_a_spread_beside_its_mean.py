"""REINFORCE with a Gaussian policy whose standard deviation is a parameter that only the loss reads."""

import torch
from torch import nn

torch.manual_seed(0)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.full((1,), -0.5))

    def forward(self, s):
        return self.mu(s)


def best(s):
    return s[:, :1] - 0.5 * s[:, 1:]


pi = Policy()
opt = torch.optim.Adam(pi.parameters(), lr=5e-3)
baseline = 0.0
for it in range(300):
    s = torch.rand(64, 2) * 2 - 1
    dist = torch.distributions.Normal(pi(s), pi.log_std.exp())
    a = dist.sample()
    r = -(a - best(s)).abs()
    adv = r - baseline
    baseline = 0.9 * baseline + 0.1 * r.mean().item()
    loss = -(dist.log_prob(a) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 60 == 0:
        print(it, "reward", r.mean().item(), "std", pi.log_std.exp().item())
with torch.no_grad():
    print("error of the mean action", (pi(s) - best(s)).abs().mean().item())
