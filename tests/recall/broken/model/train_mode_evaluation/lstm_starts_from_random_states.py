"""Hidden and cell state are drawn by randn in each forward pass, in the evaluation, too.

After https://github.com/schmidt-ju/crat-pred/issues/8
"""

# names: train-mode-evaluation
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
N, T = 512, 12
x = torch.randn(N, T, 3)
y = (x[:, :4, 0].sum(1) > 0).long()


class Net(nn.Module):
    def __init__(self, hidden=24, layers=2):
        super().__init__()
        self.h, self.l = hidden, layers
        self.lstm = nn.LSTM(3, hidden, layers, batch_first=True)
        self.fc = nn.Linear(hidden, 2)

    def forward(self, x):
        h0 = torch.randn(self.l, x.size(0), self.h)
        c0 = torch.randn(self.l, x.size(0), self.h)
        out, _ = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1])


net = Net()
tr = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=32, shuffle=True)
te = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=32)
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(12):
    net.train()
    run = 0.0
    for a, b in tr:
        opt.zero_grad()
        loss = ce(net(a), b)
        loss.backward()
        opt.step()
        run += loss.item()
    net.eval()
    c = 0
    with torch.no_grad():
        for a, b in te:
            c += (net(a).argmax(1) == b).sum().item()
    print(f"epoch {epoch} loss {run / len(tr):.3f} acc {c / 112:.3f}")
