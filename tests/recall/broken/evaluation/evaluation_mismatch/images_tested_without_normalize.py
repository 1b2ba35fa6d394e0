"""Normalize is in the transform of the training set only, as in many first ports of a ResNet to own photos."""

# names: evaluation-mismatch
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def to_tensor(image):
    return torch.from_numpy(image).permute(2, 0, 1).float().div(255)


def normalize(image):
    return (image - MEAN) / STD


class Photos(Dataset):
    def __init__(self, n, seed, transforms):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, 2, n)
        self.x = rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8)
        for i, label in enumerate(self.y):
            half = slice(0, 8) if label else slice(8, 16)
            self.x[i, half] //= 2
        self.transforms = transforms

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        image = self.x[i]
        for t in self.transforms:
            image = t(image)
        return image, int(self.y[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AvgPool2d(4))
        self.fc = nn.Linear(8 * 16, 2)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def accuracy(net, loader):
    net.eval()
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (net(x).argmax(1) == y).sum().item()
    return hits / len(loader.dataset)


torch.manual_seed(1)
trainset = Photos(512, 0, [to_tensor, normalize])
testset = Photos(192, 1, [to_tensor])
trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
testloader = DataLoader(testset, batch_size=64)
net = Net()
criterion, optimizer = nn.CrossEntropyLoss(), optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(4):
    net.train()
    for x, y in trainloader:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()
    print(f"epoch {epoch}: {accuracy(net, testloader):.3f}")
