"""Melodies: a GRU learns to continue, then to prefer rising ones by a hinge against a frozen copy of itself."""

import copy

import torch
from torch import nn

torch.manual_seed(9)
NOTES, LENGTH = 24, 12


class Melody(nn.Module):
    def __init__(self):
        super().__init__()
        self.note = nn.Embedding(NOTES, 32)
        self.memory = nn.GRU(32, 48, batch_first=True)
        self.following = nn.Linear(48, NOTES)

    def forward(self, notes):
        return self.following(self.memory(self.note(notes))[0])


def tunes(count, rising):
    start = torch.randint(0, NOTES, (count, 1))
    steps = torch.randint(1, 4, (count, LENGTH - 1)) * (1 if rising else -1)
    return torch.cat([start, start + steps.cumsum(1)], 1) % NOTES


def likelihood(model, tune):
    scores = model(tune[:, :-1]).log_softmax(-1)
    return scores.gather(2, tune[:, 1:, None]).squeeze(2).mean(1)


model = Melody()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(180):
    loss = -likelihood(model, torch.cat([tunes(24, True), tunes(24, False)])).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"learned: {loss.item():.4f}")

anchor = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(40):
    better, worse = tunes(32, True), tunes(32, False)
    with torch.no_grad():
        margin = likelihood(anchor, better) - likelihood(anchor, worse)
    gain = likelihood(model, better) - likelihood(model, worse) - margin
    loss = nn.functional.relu(0.25 - gain).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(f"preferred: {loss.item():.4f}")
