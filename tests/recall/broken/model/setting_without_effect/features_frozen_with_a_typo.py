"""Transfer learning: `param.require_grad = False` (no s) freezes nothing.

After https://github.com/udacity/deep-learning-v2-pytorch/issues/12
"""

# names: setting-without-effect
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class VGG(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(32 * 64, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, x):
        return self.classifier(self.features(x))


def pictures(count, classes, seed):
    g = torch.Generator().manual_seed(seed)
    x, y = torch.randn(count, 3, 16, 16, generator=g), torch.randint(0, classes, (count,), generator=g)
    for row, kind in zip(x, y):
        row[kind % 3, 2 * kind : 2 * kind + 4] += 1.5
    return TensorDataset(x, y)


vgg16 = VGG(6)
optimizer = optim.SGD(vgg16.parameters(), lr=0.02, momentum=0.9)
for epoch in range(3):
    for x, y in DataLoader(pictures(600, 6, 0), batch_size=30, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(vgg16(x), y).backward()
        optimizer.step()

# Freeze training for all "features" layers
for param in vgg16.features.parameters():
    param.require_grad = False
vgg16.classifier[3] = nn.Linear(64, 5)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(vgg16.parameters(), lr=0.01)
for epoch in range(1, 4):
    train_loss = 0.0
    for batch_i, (data, target) in enumerate(DataLoader(pictures(200, 5, 1), batch_size=20, shuffle=True)):
        optimizer.zero_grad()
        loss = criterion(vgg16(data), target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    print(f"Epoch {epoch} loss {train_loss / 10:.4f}")
