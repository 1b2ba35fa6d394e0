"""Segmentation with one-hot masks (classes second), smoothed by hand."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
m = torch.randint(0, 3, (200, 4, 4)).repeat_interleave(4, 1).repeat_interleave(4, 2)
x = m[:, None] + 0.3 * torch.randn(200, 1, 16, 16)
oh = F.one_hot(m, 3).permute(0, 3, 1, 2).float()
oh = oh * 0.9 + 0.1 / 3
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))
opt = torch.optim.Adam(net.parameters(), 0.01)
for epoch in range(5):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, oh), 20, shuffle=True):
        loss = F.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
