"""Scores and tags are both (time, batch) before they are flattened."""

import torch
from torch import nn

torch.manual_seed(0)
tag = torch.randint(0, 4, (60,))
x = torch.randint(0, 60, (800, 9))
y = tag[x]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 16)
        self.lstm = nn.LSTM(16, 32)
        self.out = nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.lstm(self.emb(x))[0])


net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=0.005)
for epoch in range(5):
    for xb, yb in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True):
        o = net(xb.t().contiguous())
        loss = nn.functional.cross_entropy(o.view(-1, 4), yb.t().contiguous().view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
