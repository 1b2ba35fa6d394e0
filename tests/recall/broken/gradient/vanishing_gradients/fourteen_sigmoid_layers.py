"""A deep net of sigmoids with the default start: the first layers get no gradient to speak of."""

# names: vanishing-gradients
from itertools import pairwise

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def deep_net(sizes):
    layers = []
    for a, b in pairwise(sizes[:-1]):
        layers += [nn.Linear(a, b), nn.Sigmoid()]
    layers.append(nn.Linear(sizes[-2], sizes[-1]))
    return nn.Sequential(*layers)


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1000, 10)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    net = deep_net([10] + [32] * 14 + [3])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(20):
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch:2d} loss {sum(losses) / len(losses):.4f}")
