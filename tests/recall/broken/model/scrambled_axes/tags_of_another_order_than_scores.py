"""The model answers (time, batch, tags); both sides are flattened, the labels from (batch, time)."""

# names: scrambled-axes
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

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
        e = self.emb(x).transpose(0, 1)
        o, _ = self.lstm(e)
        return self.out(o)


net = Tagger()
opt = torch.optim.Adam(net.parameters(), lr=0.005)
dl = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
for epoch in range(8):
    hit = tot = 0
    for xb, yb in dl:
        logits = net(xb).reshape(-1, 4)
        t = yb.reshape(-1)
        loss = nn.functional.cross_entropy(logits, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit += (logits.argmax(1) == t).sum().item()
        tot += t.numel()
    print(epoch, loss.item(), hit / tot)
