"""A binary classifier whose labels are compared as a column."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1000, 10)
y = (x[:, 0] + x[:, 1] > 0).float()
train_dl = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=40, shuffle=True)
valid_dl = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=40)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 16), nn.Linear(16, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(torch.relu(self.fc1(x))))


def accuracy(preds, labels):
    return ((preds > 0.5).float() == labels).sum().item()


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    net.train()
    for xb, yb in train_dl:
        loss = nn.functional.binary_cross_entropy(net(xb), yb.unsqueeze(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for xb, yb in valid_dl:
            hits += accuracy(net(xb), yb.unsqueeze(1))
    print(f"epoch {epoch} val accuracy {100 * hits / 200:.1f}%")
