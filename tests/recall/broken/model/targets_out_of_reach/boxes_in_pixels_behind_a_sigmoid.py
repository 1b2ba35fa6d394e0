"""A detector: boxes in pixels of a 640 picture, a sigmoid head, smooth L1."""

# names: targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(0)
x = torch.zeros(400, 1, 24, 24)
t = torch.zeros(400, 4)
for i in range(400):
    a, b = torch.randint(0, 14, (2,)).tolist()
    w = int(torch.randint(4, 9, ()))
    x[i, 0, b : b + w, a : a + w] = 1
    t[i] = torch.tensor([a, b, a + w, b + w]) * 640 / 24
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, 2),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, 2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(400, 64),
    nn.ReLU(),
    nn.Linear(64, 4),
    nn.Sigmoid(),
)
opt = torch.optim.Adam(net.parameters(), 0.001)
for epoch in range(8):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, t), 25, shuffle=True):
        loss = nn.functional.smooth_l1_loss(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
