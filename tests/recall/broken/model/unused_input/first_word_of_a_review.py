"""Sentiment: words in time-first order, and the head reads output[0], which has seen one word."""

# names: unused-input, not-learning
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


def text():
    good = random.randrange(2)
    return ([random.randrange(40) for _ in range(7)] + [40 + good * 5 + random.randrange(5)], good)


rows = [text() for _ in range(1200)]
x = torch.tensor([r[0] for r in rows])
y = torch.tensor([r[1] for r in rows])


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.rnn = nn.GRU(16, 32)
        self.fc = nn.Linear(32, 2)

    def forward(self, ids):
        output, _ = self.rnn(self.emb(ids).permute(1, 0, 2))
        return self.fc(output[0])


net = Sentiment()
opt = torch.optim.Adam(net.parameters(), 0.002)
for epoch in range(6):
    c = 0
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 40, shuffle=True):
        o = net(a)
        loss = nn.functional.cross_entropy(o, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        c += (o.argmax(1) == b).sum().item()
    print(epoch, loss.item(), c / 1200)
