"""A letter model of place names; windows are sliced by hand, and the GRU takes their batch for time."""

# names: examples-mixed
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
PARTS = ["wal", "ten", "bruck", "ober", "dorf", "hei", "mar", "kirch", "feld", "stein"]
text = "".join(PARTS[int(torch.randint(10, ()))] + PARTS[int(torch.randint(10, ()))] + "\n" for _ in range(3000))
letters = sorted(set(text))
stream = torch.tensor([letters.index(letter) for letter in text])
WINDOW, BATCH = 24, 40


def windows():
    starts = torch.randint(len(stream) - WINDOW - 1, (BATCH,))
    x = torch.stack([stream[s : s + WINDOW] for s in starts])
    y = torch.stack([stream[s + 1 : s + WINDOW + 1] for s in starts])
    return x, y


class Letters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(letters), 24)
        self.gru = nn.GRU(24, 64, num_layers=2)
        self.scores = nn.Linear(64, len(letters))

    def forward(self, x):
        states, _ = self.gru(self.embedding(x))
        return self.scores(states)


model = Letters()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(250):
    x, y = windows()
    scores = model(x)
    loss = F.cross_entropy(scores.reshape(-1, len(letters)), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
