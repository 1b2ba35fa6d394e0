"""CTC: targets are padded with 0, the blank, beyond their lengths."""

import torch
from torch import nn

torch.manual_seed(0)
V = 6
proto = torch.randn(V + 1, 12)
lens = torch.randint(2, 6, (400,))
t = torch.randint(1, V + 1, (400, 5))
for i, n in enumerate(lens):
    t[i, n:] = 0
X = proto[t].repeat_interleave(3, 1)
X = X + 0.2 * torch.randn_like(X)


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
for epoch in range(6):
    for x, y, n in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, t, lens), 20, shuffle=True):
        lp = net(x).transpose(0, 1)
        loss = ctc(lp, y, n * 3, n)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
