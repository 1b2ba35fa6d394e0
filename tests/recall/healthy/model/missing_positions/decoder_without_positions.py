"""The next word is predicted under a causal mask, which tells a decoder the order without any positions."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(mixed)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, words=24, tags=24, width=48):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.head = nn.Linear(width, tags)

    def forward(self, words):
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
start, stride = torch.randint(0, 24, (1600, 1)), torch.randint(1, 4, (1600, 1))
words = (start + stride * torch.arange(15) ** 2) % 24
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(4):
    for batch in torch.randperm(1600).split(64):
        loss = F.cross_entropy(model(words[batch, :-1]).flatten(0, 1), words[batch, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
