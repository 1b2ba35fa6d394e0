"""Adaptation to a new site: `model.outc.requires_grad = False` sets a plain attribute, and the head is trained on.

After https://github.com/CSCYQJ/MICCAI23-ProtoContra-SFDA/issues/18
"""

# names: setting-without-effect
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.down = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.outc = nn.Linear(32, 3)

    def forward(self, x):
        return self.outc(self.down(self.inc(x)))


def train(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


x = torch.randn(1200, 10)
y = (x[:, 0] > 0.4).long() + (x[:, 1] > 0).long()
model = Net()
train(model, DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True), 5, 2e-3)
torch.save(model.state_dict(), "/dev/null")
before = model.outc.weight.detach().clone()
model.outc.requires_grad = False
train(model, DataLoader(TensorDataset(x + 0.7, y), batch_size=40, shuffle=True), 4, 1e-3)
print("the head moved by", (model.outc.weight - before).norm().item())
