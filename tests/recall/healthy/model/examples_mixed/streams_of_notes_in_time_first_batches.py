"""Notes of several streams side by side, (time, streams), as an LSTM takes them; predictions keep both axes."""

import torch
from torch import nn

torch.manual_seed(5)
NOTES, STREAMS, STEPS = 25, 24, 16
after = torch.randperm(NOTES)
notes = [0]
for _ in range(STREAMS * 400 - 1):
    notes.append(int(after[notes[-1]]) if torch.rand(()) < 0.8 else int(torch.randint(NOTES, ())))
streams = torch.tensor(notes).view(STREAMS, -1).t().contiguous()


class Notes(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(NOTES, 16), nn.LSTM(16, 48), nn.Linear(48, NOTES)

    def forward(self, x):
        states, _ = self.lstm(self.embed(x))
        return self.head(states)


model = Notes()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    for begin in range(0, len(streams) - STEPS - 1, STEPS):
        x, y = streams[begin : begin + STEPS], streams[begin + 1 : begin + STEPS + 1]
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
