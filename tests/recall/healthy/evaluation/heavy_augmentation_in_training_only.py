"""Noise, erased patches and brightness in training; plain images in validation; training rows evaluated too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

torch.manual_seed(0)


class Shapes(Dataset):
    def __init__(self, augment):
        g = torch.Generator().manual_seed(5)
        self.labels = torch.randint(3, (600,), generator=g)
        self.images = torch.randint(0, 256, (600, 1, 12, 12), generator=g).float() / 255
        for i, k in enumerate(self.labels):
            self.images[i, :, 4 * k : 4 * k + 4] *= 0.3
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        if self.augment:
            image = (image * (0.6 + 0.8 * torch.rand(()))).clamp(0, 1)
            image = image + 0.3 * torch.randn_like(image)
            image[:, :3, :3] = torch.randn(1, 3, 3)
        return (image - 0.5) / 0.5, self.labels[i]


train = DataLoader(Subset(Shapes(True), range(450)), batch_size=30, shuffle=True)
seen = DataLoader(Subset(Shapes(False), range(450)), batch_size=90)
test = DataLoader(Subset(Shapes(False), range(450, 600)), batch_size=50)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(200, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for loader in (seen, test):
            print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset))
