"""Mixup draws one permutation for the images and another for their labels.

After https://github.com/xudonmao/VMT/issues/1
"""

# names: labels-unrelated, not-learning
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

NUM_CLASSES = 5
prototypes = torch.randn(NUM_CLASSES, 1, 12, 12)


def make_split(n):
    labels = torch.randint(NUM_CLASSES, (n,))
    return TensorDataset(prototypes[labels] + 0.9 * torch.randn(n, 1, 12, 12), labels)


def mixup(x, y, alpha=1.0):
    lam = np.random.beta(alpha, alpha)
    mixed_x = lam * x + (1 - lam) * x[torch.randperm(x.size(0))]
    mixed_y = lam * y + (1 - lam) * y[torch.randperm(x.size(0))]
    return mixed_x, mixed_y


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()
        )
        self.classifier = nn.Linear(16 * 36, NUM_CLASSES)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def soft_cross_entropy(logits, targets):
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


train_loader = DataLoader(make_split(1000), batch_size=50, shuffle=True)
val_loader = DataLoader(make_split(250), batch_size=50)
model = ConvNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(8):
    model.train()
    losses = []
    for x, y in train_loader:
        x, y = mixup(x, F.one_hot(y, NUM_CLASSES).float())
        loss = soft_cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"[{epoch}] loss={np.mean(losses):.3f} val_acc={hits / 250:.3f}")
