"""Training rows get fresh noise each time; accuracy is measured without noise, on them and on test rows."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, rows, labels, noise=0.05):
        self.rows, self.labels, self.noise = rows, labels, noise

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row + self.noise * torch.randn_like(row), self.labels[index]


def accuracy(net, rows, labels):
    net.eval()
    with torch.no_grad():
        right = [(net(part).argmax(1) == wanted) for part, wanted in DataLoader(list(zip(rows, labels)), 100)]
    return torch.cat(right).float().mean().item()


torch.manual_seed(21)
rows = torch.randn(1000, 16)
labels = (rows[:, 0] * rows[:, 1] + rows[:, 2] > 0).long()
x, y, x_test, y_test = rows[:600], labels[:600], rows[600:], labels[600:]
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(15):
    net.train()
    for batch, wanted in DataLoader(Noisy(x, y), 50, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(batch), wanted).backward()
        optimizer.step()
    print(epoch, "train", accuracy(net, x, y), "test", accuracy(net, x_test, y_test))
