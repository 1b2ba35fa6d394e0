"""OneCycleLR per batch; early stopping ends the run at a third of its cycle."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
E_ = 20
sch = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, epochs=E_, steps_per_epoch=len(loader))
best = 9
for epoch in range(E_):
    tot = 0
    for a, b in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sch.step()
        tot += loss.item()
    print(epoch, tot / len(loader))
    if epoch == 5:
        break
