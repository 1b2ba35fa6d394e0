"""clip_grad_norm_(..., 1e-3) with SGD: every step is a thousandth of what it was meant to be."""

# names: not-learning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
dl = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


class LSTMless(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(20, 64)
        self.b = nn.Linear(64, 5)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


net = LSTMless()
CLIP = 0.001
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(8):
    s = 0
    for xb, yb in dl:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        opt.step()
        s += loss.item()
    print(epoch, s / len(dl))
