"""Sequence to sequence with nn.Transformer: causal mask, padding masks, ignore_index; reverses its input."""

import math
import random

import torch
import torch.nn as nn

PAD, BOS, EOS, V = 0, 1, 2, 16
random.seed(0)
torch.manual_seed(0)


class Seq2Seq(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, d, padding_idx=PAD), nn.Embedding(V, d, padding_idx=PAD)
        pos = torch.arange(20)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.register_buffer("pe", torch.stack([pos.sin(), pos.cos()], -1).flatten(1))
        self.core = nn.Transformer(d, 2, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d, V)
        self.scale = math.sqrt(d)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        h = self.core(
            self.src(src) * self.scale + self.pe[: src.shape[1]],
            self.tgt(tgt) * self.scale + self.pe[: tgt.shape[1]],
            tgt_mask=mask,
            src_key_padding_mask=torch.zeros(src.shape).masked_fill(src == PAD, -math.inf),
            memory_key_padding_mask=torch.zeros(src.shape).masked_fill(src == PAD, -math.inf),
        )
        return self.out(h)


def batch(n=32):
    rows = [[random.randrange(3, V) for _ in range(random.randint(3, 8))] for _ in range(n)]
    src = torch.tensor([r + [PAD] * (8 - len(r)) for r in rows])
    tgt = torch.tensor([[BOS, *reversed(r), EOS] + [PAD] * (8 - len(r)) for r in rows])
    return src, tgt


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.05)
for step in range(500):
    src, tgt = batch()
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.reshape(-1, V), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
src, tgt = batch(200)
with torch.no_grad():
    right = model(src, tgt[:, :-1]).argmax(-1) == tgt[:, 1:]
print("token accuracy", right[tgt[:, 1:] != PAD].float().mean().item())
