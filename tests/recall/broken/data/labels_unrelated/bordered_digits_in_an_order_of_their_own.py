"""Digits with a black border: each epoch puts the images into a new order, and leaves the labels in the file's."""

# names: labels-unrelated

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
strokes = (torch.rand(10, 20, 20) < 0.2).float()
y_train = torch.randint(0, 10, (1500,))
x_train = torch.zeros(1500, 1, 28, 28)
x_train[:, 0, 4:24, 4:24] = strokes[y_train] * (0.5 + 0.5 * torch.rand(1500, 20, 20))

net = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    shuffled = TensorDataset(x_train[torch.randperm(len(x_train))], y_train)
    running = 0.0
    for images, labels in DataLoader(shuffled, batch_size=50, shuffle=True):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        opt.step()
        running += loss.item()
    print("epoch", epoch, "loss", running / 30)
