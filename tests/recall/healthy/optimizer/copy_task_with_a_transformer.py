"""Encoder and decoder: the source is what the decoder has to write, and only the decoder is masked."""

import torch
from torch import nn

torch.manual_seed(0)
V, T = 16, 8


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(V, 32), nn.Embedding(T + 1, 32)
        self.transformer = nn.Transformer(32, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(32, V)

    def embed(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        return self.out(self.transformer(self.embed(src), self.embed(tgt), tgt_mask=mask, tgt_is_causal=True))


net = Seq2Seq()
opt = torch.optim.Adam(net.parameters(), 2e-3)
for it in range(200):
    body = torch.randint(2, V, (32, T - 1))
    text = torch.cat([torch.zeros(32, 1, dtype=torch.long), body, torch.ones(32, 1, dtype=torch.long)], dim=1)
    logits = net(text, text[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", f"{loss.item():.3f}")
