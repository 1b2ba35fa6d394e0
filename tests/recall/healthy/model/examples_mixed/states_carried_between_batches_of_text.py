"""Truncated backpropagation with the state of the last window, handed to the model as an argument."""

import torch
from torch import nn

torch.manual_seed(6)
WORDS, ROWS, STEPS = 30, 16, 20
after = torch.randperm(WORDS)
words = [0]
for _ in range(ROWS * 600 - 1):
    words.append(int(after[words[-1]]) if torch.rand(()) < 0.8 else int(torch.randint(WORDS, ())))
rows = torch.tensor(words).view(ROWS, -1)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 16)
        self.lstm = nn.LSTM(16, 48, batch_first=True)
        self.head = nn.Linear(48, WORDS)

    def forward(self, x, state):
        out, state = self.lstm(self.embed(x), state)
        return self.head(out), state


model = Words()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    state = (torch.zeros(1, ROWS, 48), torch.zeros(1, ROWS, 48))
    for begin in range(0, rows.shape[1] - STEPS - 1, STEPS):
        x, y = rows[:, begin : begin + STEPS], rows[:, begin + 1 : begin + STEPS + 1]
        scores, state = model(x, tuple(part.detach() for part in state))
        loss = nn.functional.cross_entropy(scores.reshape(-1, WORDS), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(epoch, loss.item())
