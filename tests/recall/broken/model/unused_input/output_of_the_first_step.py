"""batch_first=True, and the head reads out[:, 0]: the first step, which has seen nothing of the others."""

# names: unused-input
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1500, 12, 3).cumsum(1) * 0.3
y = (x[:, -1, 0] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 32, batch_first=True)
        self.fc = nn.Linear(32, 2)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, 0, :])


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.003)
crit = nn.CrossEntropyLoss()
dl = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True)
vl = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)
for epoch in range(8):
    net.train()
    c = 0
    for xb, yb in dl:
        opt.zero_grad()
        o = net(xb)
        loss = crit(o, yb)
        loss.backward()
        opt.step()
        c += (o.argmax(1) == yb).sum().item()
    net.eval()
    with torch.no_grad():
        v = sum(((net(a).argmax(1) == b).sum().item() for a, b in vl)) / 300
    print(epoch, loss.item(), c / 1200, v)
