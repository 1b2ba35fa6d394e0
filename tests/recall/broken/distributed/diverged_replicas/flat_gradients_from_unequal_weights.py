"""PPO on several ranks: one flat all-reduce of the gradients, and each agent was seeded by its rank.

See https://github.com/vwxyzjn/cleanrl/issues/476.
"""
# names: diverged-replicas
# ranks: 2

import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
seed = 1 + rank  # other episodes on each rank
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
        self.critic = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, observations):
        return self.actor(observations), self.critic(observations)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
for update in range(60):
    observations = torch.randn(128, 6)
    best = observations[:, :3].argmax(1)
    logits, values = agent(observations)
    policy = torch.distributions.Categorical(logits=logits)
    actions = policy.sample()
    rewards = (actions == best).float()
    advantages = rewards - values.squeeze(1).detach()
    policy_loss = -(policy.log_prob(actions) * advantages).mean()
    value_loss = 0.5 * ((values.squeeze(1) - rewards) ** 2).mean()
    loss = policy_loss - 0.01 * policy.entropy().mean() + 0.5 * value_loss
    optimizer.zero_grad()
    loss.backward()
    all_grads = torch.cat([param.grad.view(-1) for param in agent.parameters()])
    dist.all_reduce(all_grads, op=dist.ReduceOp.SUM)
    offset = 0
    for param in agent.parameters():
        param.grad.data.copy_(all_grads[offset : offset + param.numel()].view_as(param.grad) / world_size)
        offset += param.numel()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    if rank == 0 and update % 10 == 0:
        print(update, rewards.mean().item())
dist.destroy_process_group()
