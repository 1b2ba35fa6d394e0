"""The trunk of the first task starts the second one; its new head is tested before it is trained."""

import torch
from torch import nn

torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.trunk(x))


x = torch.randn(1200, 12)
first, second = x[:, :4].argmax(1), (x[:, :4] + x[:, 4:8]).argmax(1)


def train(net, y):
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(10):
        for ids in torch.randperm(900).split(30):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[ids]), y[ids]).backward()
            optimizer.step()


def accuracy(net, y):
    with torch.no_grad():
        return (net(x[900:]).argmax(1) == y[900:]).float().mean().item()


teacher = Net()
train(teacher, first)
print("first task", accuracy(teacher, first))
trunk = {name: value for name, value in teacher.state_dict().items() if name.startswith("trunk")}
student = Net()
student.load_state_dict(trunk, strict=False)
print("second task, before its training", accuracy(student, second))
train(student, second)
print("second task", accuracy(student, second))
embedder = Net()
embedder.load_state_dict(student.state_dict())
with torch.no_grad():
    print("features of the second task", embedder.trunk(x[900:]).std().item())
