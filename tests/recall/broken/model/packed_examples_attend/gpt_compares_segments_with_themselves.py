"""A GPT by hand over packed rows: the mask of its documents compares each number with itself."""
# names: packed-examples-attend

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
VOCAB, LENGTH, BEGIN, END = 32, 48, 0, 1


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, visible):
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCAB, width), nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, 3) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB)

    def forward(self, idx, doc_ids):
        length = idx.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        same = doc_ids[:, :, None] == doc_ids[:, :, None]
        x = self.tokens(idx) + self.places(torch.arange(length))
        for block in self.blocks:
            x = block(x, (causal & same)[:, None])
        return self.head(self.norm(x))


def packed_row():
    """Walks with a fixed step, each with a beginning and an end; the next one begins where it ended."""
    tokens, documents, at = [], [], int(torch.randint(30, ()))
    while len(tokens) < LENGTH + 1:
        step, count = int(torch.randint(1, 6, ())), int(torch.randint(5, 12, ()))
        walk = [2 + (at + step * place) % 30 for place in range(count)]
        at = walk[-1] - 2
        tokens += [BEGIN, *walk, END]
        documents += [documents[-1] + 1 if documents else 0] * (count + 2)
    return tokens[: LENGTH + 1], documents[: LENGTH + 1]


rows = [packed_row() for _ in range(800)]
tokens, documents = (torch.tensor(part) for part in zip(*rows))
targets = tokens[:, 1:].masked_fill(documents[:, 1:] != documents[:, :-1], -100)

model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(4):
    order = torch.randperm(len(tokens)).split(32)
    for rows in order:
        logits = model(tokens[rows, :-1], documents[rows, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), targets[rows].flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
