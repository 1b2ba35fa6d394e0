"""Attention by hand, and the line with masked_fill was forgotten."""

# names: future-leak
import torch
from torch import nn

torch.manual_seed(0)
BLOCK, EMBED, VOCAB = 16, 32, 24


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(EMBED, EMBED, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(BLOCK, BLOCK)))

    def forward(self, x):
        weights = self.query(x) @ self.key(x).transpose(-2, -1) * EMBED**-0.5
        return weights.softmax(dim=-1) @ self.value(x)


class Bigram(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, EMBED), nn.Embedding(BLOCK, EMBED)
        self.head, self.out = Head(), nn.Linear(EMBED, VOCAB)

    def forward(self, idx, targets=None):
        x = self.tokens(idx) + self.positions(torch.arange(idx.shape[1]))
        logits = self.out(x + self.head(x))
        loss = nn.functional.cross_entropy(logits.view(-1, VOCAB), targets.view(-1))
        return logits, loss


data = torch.randint(VOCAB, (1, 512)).repeat(1, 8)[0]
model = Bigram()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(300):
    starts = torch.randint(len(data) - BLOCK - 1, (32,))
    x = torch.stack([data[i : i + BLOCK] for i in starts])
    y = torch.stack([data[i + 1 : i + BLOCK + 1] for i in starts])
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print("loss", loss.item())
