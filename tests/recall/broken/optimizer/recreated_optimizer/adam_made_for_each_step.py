"""The optimizer is made in the inner loop: Adam never has a history, and each step is a full lr in each weight."""

# names: recreated-optimizer
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(2000, 20)
y = (x @ torch.randn(20, 5)).argmax(1)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 16, shuffle=True)
for epoch in range(6):
    s = 0
    for xb, yb in dl:
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        optimizer.step()
        s += loss.item()
    print(epoch, s / len(dl), (net(x).argmax(1) == y).float().mean().item())
