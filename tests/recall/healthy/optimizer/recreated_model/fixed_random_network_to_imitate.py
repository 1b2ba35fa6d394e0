"""A network imitates a fixed random one, and its error tells new states from known ones."""

import torch
import torch.nn as nn

torch.manual_seed(51)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, state):
        return self.body(state)


target, predictor = Encoder().eval(), Encoder()
optimizer = torch.optim.Adam(predictor.parameters(), lr=1e-3)
known = torch.randn(2000, 8)
for step in range(800):
    state = known[torch.randint(2000, (64,))]
    with torch.no_grad():
        wanted = target(state)
    loss = (predictor(state) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
predictor.eval()
with torch.no_grad():
    for name, state in (("known", torch.randn(500, 8)), ("new", 3 + torch.randn(500, 8))):
        wanted = target(state)
        print(f"{name}: {(predictor(state) - wanted).pow(2).mean():.4f}")
