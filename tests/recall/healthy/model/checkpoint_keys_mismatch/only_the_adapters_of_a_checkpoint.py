"""Low-rank updates are saved alone and loaded over the base with strict=False: all their keys fit."""

import torch
from torch import nn

torch.manual_seed(9)


class LowRank(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def network(state=None):
    plain = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1))
    if state is not None:
        plain.load_state_dict(state)
    return plain


def adapted(state):
    net = network(state)
    net[0], net[2] = LowRank(net[0]), LowRank(net[2])
    return net


def fit(model, parameters, shift, steps):
    optimizer = torch.optim.Adam(parameters, lr=5e-3)
    for step in range(steps):
        x = torch.randn(64, 10)
        loss = nn.functional.mse_loss(model(x), torch.sin(x[:, :1] + shift) * x[:, 1:2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


base = network()
fit(base, base.parameters(), 0.0, 300)
state = {name: value.clone() for name, value in base.state_dict().items()}
tuned = adapted(state)
mine = [p for name, p in tuned.named_parameters() if ".base." not in name]
fit(tuned, mine, 1.0, 200)
saved = {name: value.clone() for name, value in tuned.state_dict().items() if ".base." not in name}
served = adapted(state)
print(served.load_state_dict(saved, strict=False).unexpected_keys)
x = torch.randn(500, 10)
with torch.no_grad():
    print(nn.functional.mse_loss(served(x), torch.sin(x[:, :1] + 1.0) * x[:, 1:2]).item())
