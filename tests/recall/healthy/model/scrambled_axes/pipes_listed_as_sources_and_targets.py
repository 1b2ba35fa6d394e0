"""A water network: pressure at junctions, from demand at those that pipes connect; pipes are (2, n)."""

import torch
from torch import nn

torch.manual_seed(6)
JUNCTIONS = 400
demand = torch.randn(JUNCTIONS, 4)
ends = torch.randint(0, JUNCTIONS, (1600, 2))
pipes = torch.cat([ends, ends.flip(1)]).T
near = torch.zeros(JUNCTIONS, 4).index_add_(0, pipes[1], demand[pipes[0]])
pressure = near @ torch.tensor([1.0, -0.5, 0.3, 0.8]) + 0.2 * demand[:, 0]
known = torch.rand(JUNCTIONS) < 0.6


class Flow(nn.Module):
    def __init__(self, size, out):
        super().__init__()
        self.message, self.update = nn.Linear(size, out), nn.Linear(size + out, out)

    def forward(self, state, pipes):
        start, end = pipes[0], pipes[1]
        sent = self.message(state).index_select(0, start)
        place = end[:, None].expand_as(sent)
        received = torch.zeros(len(state), sent.shape[1]).scatter_add(0, place, sent)
        return self.update(torch.cat([state, received], dim=1))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Flow(4, 24), Flow(24, 1)])

    def forward(self, state, pipes):
        return self.layers[1](self.layers[0](state, pipes).relu(), pipes).squeeze(1)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(150):
    error = (model(demand, pipes) - pressure)[known].square().mean()
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
with torch.no_grad():
    print("error", (model(demand, pipes) - pressure)[~known].square().mean().item(), pressure.var().item())
