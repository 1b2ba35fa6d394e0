"""A frame predictor whose pre-net keeps its dropout at inference, as Tacotron 2 does."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)


class Prenet(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(size, hidden), nn.Linear(hidden, hidden)])

    def forward(self, x):
        for linear in self.layers:
            x = F.dropout(F.relu(linear(x)), p=0.5, training=True)
        return x


class FramePredictor(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.prenet = Prenet(size, 48)
        self.rnn = nn.GRU(48, 48, batch_first=True)
        self.out = nn.Linear(48, size)

    def forward(self, frames):
        hidden, _ = self.rnn(self.prenet(frames))
        return self.out(hidden)


time = torch.arange(30.0)
phase = 6.28 * torch.rand(400, 1, 1)
waves = torch.sin(0.4 * time[None, :, None] + phase + torch.arange(8.0) / 3)
model = FramePredictor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(320).split(32):
        optimizer.zero_grad()
        loss = F.mse_loss(model(waves[rows, :-1]), waves[rows, 1:])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        held_out = F.mse_loss(model(waves[320:, :-1]), waves[320:, 1:])
    print(f"{epoch}: {loss.item():.3f} {held_out.item():.3f}")
