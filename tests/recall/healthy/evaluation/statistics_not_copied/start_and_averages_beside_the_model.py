"""The first weights are a baseline, an average has its statistics measured, another is in training mode."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(0)
centres = torch.randn(4, 10)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 48), nn.BatchNorm1d(48), nn.ReLU())
        self.head = nn.Linear(48, 4)

    def forward(self, x):
        return self.head(self.body(x))


def draw(n):
    y = torch.randint(4, (n,))
    return centres[y] + torch.randn(n, 10), y


net = Net()
start, teacher, swa = copy.deepcopy(net), copy.deepcopy(net), AveragedModel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
x_test, y_test = draw(400)
for step in range(200):
    x, y = draw(64)
    teacher.train()
    with torch.no_grad():
        wanted = teacher(x + 0.1 * torch.randn_like(x)).softmax(1)
    logits = net(x)
    loss = F.cross_entropy(logits, y) + 0.1 * F.mse_loss(logits.softmax(1), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mine, weight in zip(teacher.parameters(), net.parameters()):
            mine.mul_(0.95).add_(weight, alpha=0.05)
    if step > 100:
        swa.update_parameters(net)
update_bn([draw(64)[0] for _ in range(10)], swa)
for name, model in {"start": start, "last": net, "teacher": teacher, "average": swa.module}.items():
    model.eval()
    with torch.no_grad():
        print(name, (model(x_test).argmax(1) == y_test).float().mean().item())
