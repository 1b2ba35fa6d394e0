"""Truncated backpropagation through time: the state goes on, detached between the chunks."""

import torch
import torch.nn as nn

torch.manual_seed(0)
text = "round and round the ragged rock the ragged rascal ran " * 80
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])
B, T = 8, 20
rows = ids[: len(ids) // B * B].view(B, -1)


class CharRNN(nn.Module):
    def __init__(self, n, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(n, 24)
        self.rnn = nn.LSTM(24, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n)

    def forward(self, x, state):
        h, state = self.rnn(self.emb(x), state)
        return self.out(h), state


model = CharRNN(len(chars))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    state = None
    for start in range(0, rows.shape[1] - T - 1, T):
        x, y = rows[:, start : start + T], rows[:, start + 1 : start + T + 1]
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
