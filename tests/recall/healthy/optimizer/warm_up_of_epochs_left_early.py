"""Linear warm-up over 20 epochs, run for 4 of them."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True)
m = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
o = torch.optim.Adam(m.parameters(), 0.01)
s = torch.optim.lr_scheduler.LambdaLR(o, lambda e: min(1, (e + 1) / 20))
for e in range(4):
    for a, b in dl:
        o.zero_grad()
        loss = nn.functional.cross_entropy(m(a), b)
        loss.backward()
        o.step()
    s.step()
    print(e, loss.item(), s.get_last_lr())
