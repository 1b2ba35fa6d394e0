"""A small language model with padding ignored, (batch, time, vocab) flattened."""

import torch
from torch import nn

torch.manual_seed(0)
V = 30
nxt = torch.randperm(V - 1) + 1
s = torch.zeros(600, 13, dtype=torch.long)
s[:, 0] = torch.randint(1, V, (600,))
for i in range(12):
    s[:, i + 1] = torch.where(torch.rand(600) < 0.8, nxt[s[:, i] - 1], torch.randint(1, V, (600,)))
for i, n in enumerate(torch.randint(5, 13, (600,))):
    s[i, n:] = 0


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 32, padding_idx=0)
        self.r = nn.GRU(32, 64, batch_first=True)
        self.o = nn.Linear(64, V)

    def forward(self, x):
        return self.o(self.r(self.e(x))[0])


net = LM()
opt = torch.optim.Adam(net.parameters(), 0.003)
crit = nn.CrossEntropyLoss(ignore_index=0)
for epoch in range(8):
    for (b,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(s), 40, shuffle=True):
        o = net(b[:, :-1])
        loss = crit(o.reshape(-1, V), b[:, 1:].reshape(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
