"""Images of bytes are scaled by the dataset."""

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
shapes = rng.integers(0, 256, (6, 1, 12, 12))


class Images(Dataset):
    def __init__(self, n):
        self.y = rng.integers(0, 6, n)
        noise = rng.integers(0, 256, (n, 1, 12, 12))
        self.x = (shapes[self.y] * 0.4 + noise * 0.6).astype("uint8")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i].astype("float32") / 255), int(self.y[i])


net = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 32), nn.ReLU(), nn.Linear(32, 6)
)
optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
trainloader = DataLoader(Images(1200), batch_size=32, shuffle=True)
testloader = DataLoader(Images(300), batch_size=100)
for epoch in range(6):
    net.train()
    running_loss = 0.0
    for images, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    net.eval()
    with torch.no_grad():
        correct = sum((net(i).argmax(1) == y).sum().item() for i, y in testloader)
    print(epoch, running_loss / len(trainloader), correct / 300)
