"""The array is normalised in place when the data set is made, and not when a row is read."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)
torch.manual_seed(0)


class ScansDataset(Dataset):
    def __init__(self, scans, labels, mean, std):
        scans -= mean
        scans /= std
        self.scans, self.labels = scans, labels

    def __len__(self):
        return len(self.scans)

    def __getitem__(self, index):
        return torch.from_numpy(self.scans[index]), int(self.labels[index])


labels = np.random.randint(0, 4, 900)
scans = np.random.rand(900, 1, 10, 10).astype(np.float32) * 120 + 40
for scan, label in zip(scans, labels):
    scan[0, 2 * label : 2 * label + 3] += 60
mean, std = scans[:700].mean(), scans[:700].std()
train_loader = DataLoader(ScansDataset(scans[:700], labels[:700], mean, std), batch_size=35, shuffle=True)
valid_loader = DataLoader(ScansDataset(scans[700:], labels[700:], mean, std), batch_size=50)
net = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(150, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    net.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(data), target)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        ok = sum((net(data).argmax(1) == target).sum().item() for data, target in valid_loader)
    print(f"Train Epoch: {epoch} Loss: {loss.item():.4f} Valid: {ok / 200:.3f}")
