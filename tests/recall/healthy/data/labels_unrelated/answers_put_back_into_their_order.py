"""The loop sorts texts by length for packing, and puts the answers back into the order of the labels."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
N, T = 320, 12
lengths = torch.randint(3, T + 1, (N,))
y = torch.randint(0, 2, (N,))
x = torch.randint(2, 20, (N, T))
for i in range(N):
    x[i, int(lengths[i]) // 2] = 20 + y[i]
    x[i, lengths[i] :] = 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(22, 16, padding_idx=0)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 2)

    def forward(self, x, n):
        _, h = self.rnn(pack_padded_sequence(self.emb(x), n, batch_first=True))
        return self.fc(h[-1])


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(8):
    for xb, nb, yb in DataLoader(TensorDataset(x, lengths, y), batch_size=32, shuffle=True):
        nb, order = nb.sort(descending=True)
        xb = xb[order]
        out = net(xb, nb)[order.argsort()]
        loss = nn.functional.cross_entropy(out, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
