"""Returns (n,) minus values (n, 1): the critic learns the mean return."""
# names: broadcast-loss

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Bandit:
    def __init__(self):
        self.w = torch.randn(4, 6)

    def sample(self, n):
        x = torch.randn(n, 6)
        return x, (x @ self.w.T)


env = Bandit()
actor = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))
critic = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
for it in range(300):
    x, rewards = env.sample(64)
    dist = Categorical(logits=actor(x))
    a = dist.sample()
    R = rewards.gather(1, a[:, None]).squeeze(1)
    value = critic(x)
    advantage = R - value
    actor_loss = -(dist.log_prob(a) * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 50 == 0:
        print(it, R.mean().item())
