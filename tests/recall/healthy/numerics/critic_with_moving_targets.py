"""TD learning: the targets of the critic are its own guesses, and its loss says little of its progress."""

import torch
from torch import nn

torch.manual_seed(0)
critic, frozen = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1)), None
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
state = torch.randn(32, 4)
for step in range(400):
    following = 0.9 * state + 0.3 * torch.randn(32, 4)
    reward = torch.randn(32, 1) + 0.1 * state[:, :1]
    with torch.no_grad():
        target = reward + 0.95 * critic(following)
    loss = nn.functional.mse_loss(critic(state), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = following
print("td error", loss.item())
