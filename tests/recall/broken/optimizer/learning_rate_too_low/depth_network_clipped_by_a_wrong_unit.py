"""A convolutional regression in a function clips gradients to 1e-5 with a DataLoader and momentum."""

# names: learning-rate-too-low not-learning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def scenes(count):
    depth = torch.rand(count, 1) * 4 - 2
    return depth[:, :, None, None] * torch.ones(1, 1, 8, 8) + 0.2 * torch.randn(count, 1, 8, 8), depth


def train():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(TensorDataset(*scenes(960)), batch_size=32, shuffle=True)
    for epoch in range(6):
        total = 0.0
        for image, depth in loader:
            loss = nn.functional.mse_loss(net(image), depth)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), max_norm=1e-5)
            optimizer.step()
            total += loss.item()
        print(epoch, total / len(loader))


train()
