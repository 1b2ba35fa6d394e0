"""__getitem__ subtracts the mean in place from the array that it keeps: each epoch sees other images.

After https://github.com/pytorch/vision/issues/680
"""

# names: unstable-batch
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)
torch.manual_seed(0)


class ScansDataset(Dataset):
    def __init__(self, scans, labels, mean, std):
        self.scans = scans
        self.labels = labels
        self.mean, self.std = mean, std

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, index):
        scan = self.scans[index]
        scan -= self.mean
        scan /= self.std
        return torch.from_numpy(scan), int(self.labels[index])


def load():
    labels = np.random.randint(0, 4, 900)
    scans = np.random.rand(900, 1, 10, 10).astype(np.float32) * 120 + 40
    for scan, label in zip(scans, labels):
        scan[0, 2 * label : 2 * label + 3] += 60
    return scans, labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 25, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(x.flatten(1))


scans, labels = load()
mean, std = scans[:700].mean(), scans[:700].std()
train_set = ScansDataset(scans[:700], labels[:700], mean, std)
valid_set = ScansDataset(scans[700:], labels[700:], mean, std)
train_loader = DataLoader(train_set, batch_size=35, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=50)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    net.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
    net.eval()
    ok = 0
    with torch.no_grad():
        for data, target in valid_loader:
            ok += (net(data).argmax(1) == target).sum().item()
    print(f"Train Epoch: {epoch} Loss: {loss.item():.4f} Valid: {ok / 200:.3f}")
