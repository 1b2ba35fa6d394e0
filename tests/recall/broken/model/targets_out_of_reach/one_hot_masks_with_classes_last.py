"""Segmentation: (batch, height, width, classes) on both sides, one-hot, CrossEntropyLoss."""

# names: targets-out-of-reach
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
m = torch.randint(0, 3, (200, 4, 4)).repeat_interleave(4, 1).repeat_interleave(4, 2)
x = m[:, None] + 0.3 * torch.randn(200, 1, 16, 16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 3, 1))

    def forward(self, x):
        return self.c(x).permute(0, 2, 3, 1)


net = Net()
opt = torch.optim.Adam(net.parameters(), 0.01)
ce = nn.CrossEntropyLoss()
for epoch in range(5):
    for a, b in torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, F.one_hot(m, 3).float()), 20, shuffle=True
    ):
        o = net(a)
        loss = ce(o, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), (o.argmax(-1) == b.argmax(-1)).float().mean().item())
