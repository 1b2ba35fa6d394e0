"""A vision transformer by hand: linear warm-up from 0, cosine to nearly 0, stepped per batch as meant."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)).softmax(-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.n1, self.n2, self.att = nn.LayerNorm(dim), nn.LayerNorm(dim), Attention(dim, 4)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self, dim=32, classes=4):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, 4, 4)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(0.02 * torch.randn(1, 17, dim))
        self.blocks, self.norm, self.head = (
            nn.Sequential(Block(dim), Block(dim)),
            nn.LayerNorm(dim),
            nn.Linear(dim, classes),
        )

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


torch.manual_seed(0)
y = torch.randint(4, (960,))
x = 0.5 * torch.randn(960, 1, 16, 16)
for i, k in enumerate(y.tolist()):
    x[i, 0, 8 * (k // 2) : 8 * (k // 2) + 8, 8 * (k % 2) : 8 * (k % 2) + 8] += 0.5
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
total = 8 * len(loader)
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: s / 20 if s < 20 else 0.5 * (1 + math.cos(math.pi * (s - 20) / (total - 20)))
)
for epoch in range(8):
    for a, b in loader:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    print(f"epoch {epoch} loss {loss.item():.3f} lr {schedule.get_last_lr()[0]:.2e}")
