"""A class-based loop: train() is called at the start, and nothing calls eval() before the one test at the end."""

# names: train-mode-evaluation
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.layers(x)


def make(n):
    y = torch.randint(3, (n,))
    return TensorDataset(torch.randn(n, 12) + 2 * nn.functional.one_hot(y, 12), y)


torch.manual_seed(0)
net = Net()
net.train()
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(5):
    for x, y in DataLoader(make(400), batch_size=25, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
correct = 0
with torch.no_grad():
    for x, y in DataLoader(make(60), batch_size=4):
        correct += (net(x).argmax(1) == y).sum().item()
print("test accuracy", correct / 60)
