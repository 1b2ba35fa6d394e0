"""Several tags a text as a multi-hot vector, CrossEntropyLoss, and a threshold of 0.5 on the sigmoid."""

# names: targets-out-of-reach
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1500, 20)
y = (x @ torch.randn(20, 6) > 0).float()
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 6))
opt = torch.optim.Adam(net.parameters(), lr=0.002)
crit = nn.CrossEntropyLoss()
for epoch in range(10):
    for xb, yb in DataLoader(TensorDataset(x, y), 50, shuffle=True):
        opt.zero_grad()
        o = net(xb)
        loss = crit(o, yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item(), ((torch.sigmoid(o) > 0.5) == yb.bool()).float().mean().item())
