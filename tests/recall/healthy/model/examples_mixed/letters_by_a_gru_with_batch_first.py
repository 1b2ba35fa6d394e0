"""A letter model of product codes, from windows sliced by hand; its GRU takes (batch, time, features)."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
text = "".join(f"{'ABCD'[int(torch.randint(4, ()))]}-{int(torch.randint(10, 99, ()))}x2 " for _ in range(3000))
letters = sorted(set(text))
stream = torch.tensor([letters.index(letter) for letter in text])


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 24)
        self.gru = nn.GRU(24, 64, batch_first=True)
        self.scores = nn.Linear(64, len(letters))

    def forward(self, x, state=None):
        states, state = self.gru(self.embedding(x), state)
        return self.scores(states), state


model = Letters()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(200):
    starts = torch.randint(len(stream) - 25, (40,))
    chunk = torch.stack([stream[s : s + 25] for s in starts])
    scores, _ = model(chunk[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), chunk[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
