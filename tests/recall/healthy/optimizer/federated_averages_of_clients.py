"""Federated averaging: each round and client an optimizer of its own, one batch each."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
parts = torch.arange(1200).view(6, 200)
server = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
for rnd in range(25):
    states = []
    for p in parts:
        client = copy.deepcopy(server)
        opt = torch.optim.Adam(client.parameters(), 0.01)
        loss = nn.functional.cross_entropy(client(x[p]), y[p])
        opt.zero_grad()
        loss.backward()
        opt.step()
        states.append(client.state_dict())
    server.load_state_dict({k: torch.stack([s[k] for s in states]).mean(0) for k in states[0]})
print((server(x).argmax(1) == y).float().mean().item())
