"""The characters are numbered from 0, which is CTC's blank: every 'a' is lost."""

# names: targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(0)
V = 6
proto = torch.randn(V, 12)


def make(n, L=4):
    t = torch.randint(0, V, (n, L))
    f = proto[t].repeat_interleave(3, 1)
    return (f + 0.2 * torch.randn_like(f), t)


X, Y = make(400)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(12, 32, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(64, V + 1)

    def forward(self, x):
        return self.fc(self.rnn(x)[0]).log_softmax(-1)


net = Net()
ctc = nn.CTCLoss()
opt = torch.optim.Adam(net.parameters(), lr=0.005)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=20, shuffle=True)
for epoch in range(10):
    ok = 0
    for x, y in dl:
        lp = net(x).transpose(0, 1)
        il = torch.full((x.size(0),), lp.size(0))
        tl = torch.full((x.size(0),), y.size(1))
        loss = ctc(lp, y, il, tl)
        opt.zero_grad()
        loss.backward()
        opt.step()
        best = lp.argmax(2).T
        for b, t in zip(best, y):
            s = [int(v) for v in torch.unique_consecutive(b) if v != 0]
            ok += s == t.tolist()
    print(epoch, loss.item(), "exact", ok / 400)
