"""A small encoder calls scaled_dot_product_attention with its dropout rate, also when it is evaluated."""
# names: train-mode-evaluation

import torch
from torch import nn

torch.manual_seed(2)


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, dropout=0.2):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.heads = heads
        self.dropout = dropout

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Encoder(nn.Module):
    def __init__(self, vocab=40, dim=32, classes=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.attention = SelfAttention(dim, 4)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = self.norm(x + self.attention(x))
        return self.head(x.mean(1))


tokens = torch.randint(0, 40, (1200, 12))
labels = ((tokens < 8).sum(1) > 2).long()
net = Encoder()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(6):
    net.train()
    for rows in torch.randperm(1000).split(50):
        opt.zero_grad()
        nn.functional.cross_entropy(net(tokens[rows]), labels[rows]).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        hits = [
            (net(tokens[k : k + 50]).argmax(1) == labels[k : k + 50]).float().mean() for k in range(1000, 1200, 50)
        ]
    print(epoch, "val acc", round(float(torch.stack(hits).mean()), 3))
