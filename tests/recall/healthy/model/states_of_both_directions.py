"""A bidirectional GRU, whose last states of both directions are read."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.gru = nn.GRU(16, 32, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, 2)

    def forward(self, ids):
        _, h = self.gru(self.emb(ids))
        return self.out(torch.cat([h[-2], h[-1]], 1))


ids = torch.randint(0, 50, (1000, 12))
score = torch.randn(50)
y = (score[ids].sum(1) > 0).long()
model = Tagger()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for i in torch.randperm(1000).split(40):
        loss = F.cross_entropy(model(ids[i]), y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
