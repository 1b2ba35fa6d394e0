"""Time comes first all the way, (time, batch, features): a tagger with an answer for each step."""

import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(5, 24)
        self.norm = nn.LayerNorm(24)
        self.out = nn.Linear(24, 3)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(self.norm(h))


net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for it in range(200):
    x = torch.randn(20, 16, 5)
    y = (x.cumsum(0)[..., 0] > 0).long() + (x[..., 1] > 0).long()
    loss = nn.functional.cross_entropy(net(x).reshape(-1, 3), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"{loss.item():.3f}")
