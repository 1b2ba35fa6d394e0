"""PPO multiplies ratios of shape (n,) by advantages of shape (n, 1).

After https://github.com/RITCHIEHuang/DeepRL_Algorithms/issues/13
"""

# names: broadcast-loss
import torch
import torch.nn as nn
from torch.distributions import Categorical

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3))
value = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optim_p = torch.optim.Adam(policy.parameters(), lr=3e-3)
optim_v = torch.optim.Adam(value.parameters(), lr=3e-3)
W = torch.randn(4, 3)


def collect(n=256):
    states = torch.randn(n, 4)
    with torch.no_grad():
        dist = Categorical(logits=policy(states))
        actions = dist.sample()
        logp = dist.log_prob(actions)
    rewards = ((states @ W).argmax(1) == actions).float().unsqueeze(1)
    return states, actions, logp, rewards


for it in range(60):
    states, actions, old_logp, rewards = collect()
    with torch.no_grad():
        adv = rewards - value(states)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(4):
        dist = Categorical(logits=policy(states))
        logp = dist.log_prob(actions)
        ratio = torch.exp(logp - old_logp)
        surr1 = ratio * adv
        surr2 = torch.clamp(ratio, 0.8, 1.2) * adv
        policy_loss = -torch.min(surr1, surr2).mean()
        optim_p.zero_grad()
        policy_loss.backward()
        optim_p.step()
        v_loss = (value(states) - rewards).pow(2).mean()
        optim_v.zero_grad()
        v_loss.backward()
        optim_v.step()
    if it % 20 == 0:
        print(it, "reward", rewards.mean().item())
print("final reward", rewards.mean().item())
