"""A small CNN with F.relu after each convolution, and average pooling."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


def edges(n):
    """Stripes along or across; bright on dark as often as dark on bright."""
    labels = torch.randint(0, 2, (n,))
    images = torch.zeros(n, 1, 12, 12)
    for image, label in zip(images, labels):
        at = int(torch.randint(1, 11, ()))
        stripe = 1.0 if torch.rand(()) < 0.5 else -1.0
        if label:
            image[0, at] = stripe
        else:
            image[0, :, at] = stripe
    return images + 0.1 * torch.randn_like(images), labels


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 9, 60)
        self.fc2 = nn.Linear(60, 2)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


trainloader = DataLoader(TensorDataset(*edges(1000)), batch_size=32, shuffle=True)
testloader = DataLoader(TensorDataset(*edges(300)), batch_size=100)
net = LeNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(8):
    net.train()
    running_loss = 0.0
    for inputs, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    net.eval()
    with torch.no_grad():
        correct = sum((net(x).argmax(1) == y).sum().item() for x, y in testloader)
    print(f"[{epoch + 1}] loss: {running_loss / len(trainloader):.3f} accuracy: {correct / 3:.0f} %")
