"""word_language_model style: (time, batch) batches, targets flattened from the source."""

import torch
from torch import nn

torch.manual_seed(0)
V = 40
nxt = torch.randperm(V)
c = [0]
for _ in range(8000):
    c.append(int(nxt[c[-1]]) if torch.rand(()) < 0.85 else int(torch.randint(0, V, ())))
data = torch.tensor(c[:8000]).view(20, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 32)
        self.r = nn.LSTM(32, 64)
        self.d = nn.Linear(64, V)

    def forward(self, x, h):
        o, h = self.r(self.e(x), h)
        return (self.d(o).view(-1, V), h)


m = RNNModel()
opt = torch.optim.SGD(m.parameters(), lr=2.0)
crit = nn.CrossEntropyLoss()
for epoch in range(6):
    h = (torch.zeros(1, 20, 64), torch.zeros(1, 20, 64))
    tot = 0
    n = 0
    for i in range(0, data.size(0) - 1, 10):
        L = min(10, data.size(0) - 1 - i)
        x, t = (data[i : i + L], data[i + 1 : i + 1 + L].reshape(-1))
        h = tuple(s.detach() for s in h)
        m.zero_grad()
        o, h = m(x, h)
        loss = crit(o, t)
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.25)
        opt.step()
        tot += loss.item()
        n += 1
    print(epoch, tot / n)
