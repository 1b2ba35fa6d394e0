"""REINFORCE on a bandit: the loss says nothing about what was learned."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(3, 4)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = 0.0
for step in range(600):
    context = torch.randn(32, 3)
    distribution = torch.distributions.Categorical(logits=policy(context))
    action = distribution.sample()
    reward = (action == (context[:, 0] > 0).long()).float()
    loss = -(distribution.log_prob(action) * (reward - baseline)).mean()
    baseline = 0.95 * baseline + 0.05 * reward.mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("mean reward", baseline)
