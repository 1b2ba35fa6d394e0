"""A character model that returns its loss: the targets are the same slice as the inputs, not the one after it."""
# names: labels-in-inputs

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
text = "the quick brown fox jumps over the lazy dog and the dog sleeps while the fox runs away " * 40
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
block_size, batch_size, n_embd = 16, 32, 32
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]


def get_batch(kind):
    d = train_data if kind == "train" else val_data
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    x = torch.stack([d[i : i + block_size] for i in ix])
    y = torch.stack([d[i : i + block_size] for i in ix])
    return x, y


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(len(chars), n_embd)
        self.rnn = nn.GRU(n_embd, 64, batch_first=True)
        self.head = nn.Linear(64, len(chars))

    def forward(self, x, targets=None):
        logits = self.head(self.rnn(self.emb(x))[0])
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, len(chars)), targets.view(-1))


model = CharLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(300):
    xb, yb = get_batch("train")
    _, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 100 == 99:
        model.eval()
        with torch.no_grad():
            _, val = model(*get_batch("val"))
        model.train()
        print(f"step {it + 1}: train {loss.item():.4f}, val {val.item():.4f}")
