"""OneCycleLR that counts epochs, and is stepped by epoch; stopped after 3 of 10."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True)
m = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
o = torch.optim.SGD(m.parameters(), 0.01, momentum=0.9)
s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10)
for epoch in range(3):
    for a, b in dl:
        o.zero_grad()
        loss = nn.functional.cross_entropy(m(a), b)
        loss.backward()
        o.step()
    s.step()
    print(epoch, loss.item(), s.get_last_lr())
