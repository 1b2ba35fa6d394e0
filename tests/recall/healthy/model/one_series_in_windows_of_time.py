"""One long series, read in stretches; each row is a moment, and the state is carried along."""

import torch
from torch import nn

torch.manual_seed(0)


class Carrying(nn.Module):
    def __init__(self, streams=12):
        super().__init__()
        self.rnn = nn.LSTM(3, 16)
        self.out = nn.Linear(16, 1)
        self.state = (torch.zeros(1, streams, 16), torch.zeros(1, streams, 16))

    def forward(self, x):
        h, state = self.rnn(x, self.state)
        self.state = tuple(s.detach() for s in state)
        return self.out(h)


series = torch.randn(1000, 12, 3)
target = series[..., :1].cumsum(0).sin()
model = Carrying()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for start in range(0, 1000 - 25, 25):
        loss = nn.functional.mse_loss(model(series[start : start + 25]), target[start : start + 25])
        opt.zero_grad()
        loss.backward()
        opt.step()
print("loss", round(loss.item(), 3))
