"""SimSiam: the targets of both views are detached, and the predictor is narrow."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
C = torch.randn(10, 32)
lab = torch.randint(0, 10, (2000,))
X = C[lab] + 0.5 * torch.randn(2000, 32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32, affine=False)
        )
        self.h = nn.Sequential(nn.Linear(32, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 32))

    def forward(self, a, b):
        z1, z2 = (self.f(a), self.f(b))
        return (self.h(z1), self.h(z2), z1.detach(), z2.detach())


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
for epoch in range(8):
    for xb in torch.utils.data.DataLoader(X, 128, shuffle=True, drop_last=True):
        p1, p2, z1, z2 = net(xb + 0.3 * torch.randn_like(xb), xb + 0.3 * torch.randn_like(xb))
        loss = -(F.cosine_similarity(p1, z2).mean() + F.cosine_similarity(p2, z1).mean()) / 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
