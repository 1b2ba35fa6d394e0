"""Loader defaults without shuffle over folders of images: one class after the other.

After https://github.com/Deci-AI/super-gradients/issues/416
"""

# names: sorted-by-label
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class ImageFolder(Dataset):
    """Twelve folders of 80 images, in the order of their names."""

    def __init__(self, split):
        g = torch.Generator().manual_seed(7)
        prototypes = torch.randn(12, 3, 8, 8, generator=g)
        per_class = 80 if split == "train" else 20
        noise = torch.Generator().manual_seed(1 if split == "train" else 2)
        self.samples = []
        for label in range(12):
            for _ in range(per_class):
                image = prototypes[label] + 1.5 * torch.randn(3, 8, 8, generator=noise)
                self.samples.append((image, label))

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


dataloader_params = {"batch_size": 16, "num_workers": 0, "drop_last": True}
torch.manual_seed(0)
train_loader = DataLoader(ImageFolder("train"), **dataloader_params)
val_loader = DataLoader(ImageFolder("val"), **dataloader_params)
net = nn.Sequential(
    nn.Conv2d(3, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 16, 64),
    nn.ReLU(),
    nn.Linear(64, 12),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(6):
    net.train()
    for images, labels in train_loader:
        loss = nn.functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    hits = total = 0
    with torch.no_grad():
        for images, labels in val_loader:
            hits += (net(images).argmax(1) == labels).sum().item()
            total += len(labels)
    print(f"epoch {epoch} train loss {loss.item():.4f} val acc {hits / total:.3f}")
