"""Each window of a series is standardised by itself, and a class is told from its shape."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.linspace(0, 1, 32)
y = torch.randint(0, 2, (1500,))
f = torch.where(y == 0, 2.0, 5.0)[:, None] + torch.randn(1500, 1)
x = (
    torch.sin(2 * 3.1416 * (f * t + torch.rand(1500, 1))) * torch.rand(1500, 1) * 5
    + torch.randn(1500, 1) * 4
    + 0.5 * torch.randn(1500, 32)
)
x = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
net = nn.Sequential(
    nn.Unflatten(1, (1, 32)),
    nn.Conv1d(1, 16, 7),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(4),
    nn.Flatten(),
    nn.Linear(64, 2),
)
opt = torch.optim.Adam(net.parameters(), 0.002)
for epoch in range(6):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 50, shuffle=True):
        loss = nn.functional.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
