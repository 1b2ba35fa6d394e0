"""A transformer encoder with Adam at 0.1, a rate that was right for the SGD before it."""

# names: learning-rate-too-high
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--iters", type=int, default=250)
opt = parser.parse_args()
torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 32)
        self.pos = nn.Parameter(torch.zeros(1, 12, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2)
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        return self.fc(self.enc(self.emb(x) + self.pos).mean(1))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
loss_fn = nn.CrossEntropyLoss()
for it in range(opt.iters):
    x = torch.randint(0, 20, (32, 12))
    y = torch.stack([(x // 5 == k).sum(1) for k in range(4)], 1).argmax(1)
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 25 == 0:
        print(f"iter {it}: loss {loss.item():.3f}")
