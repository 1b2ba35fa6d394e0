"""A target network follows the online one: its state dict is taken once and always means the latest weights."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
target = copy.deepcopy(online)
latest = online.state_dict()
optimizer = torch.optim.Adam(online.parameters(), lr=1e-3)
for step in range(300):
    state, action = torch.randn(32, 4), torch.randint(2, (32, 1))
    reward = torch.where(action[:, 0] == (state[:, 0] > 0), 1.0, 0.0)
    with torch.no_grad():
        goal = reward + 0.5 * target(torch.randn(32, 4)).max(1).values
    loss = nn.functional.smooth_l1_loss(online(state).gather(1, action)[:, 0], goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        target.load_state_dict(latest)
    if step % 100 == 0:
        state = online.state_dict()
        state["0.weight"] = state["0.weight"].clone()
        online.load_state_dict(state)
print("loss", loss.item())
