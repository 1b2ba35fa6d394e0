"""A transformer without batch_first on transposed words; labels stay (batch, time)."""

# names: scrambled-axes
import torch
from torch import nn

torch.manual_seed(0)
V, T = (40, 11)
tags = torch.randint(0, 5, (V,))
w = torch.randint(0, V, (640, T))
t = tags[w]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 32)
        self.p = nn.Parameter(torch.randn(T, 1, 32) * 0.1)
        self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0), 1)
        self.o = nn.Linear(32, 5)

    def forward(self, words):
        return self.o(self.enc(self.e(words) + self.p))


net = Tagger()
opt = torch.optim.Adam(net.parameters(), 0.003)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(8):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(w, t), 32, shuffle=True):
        out = net(a.T)
        loss = loss_fn(out.view(-1, 5), b.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
