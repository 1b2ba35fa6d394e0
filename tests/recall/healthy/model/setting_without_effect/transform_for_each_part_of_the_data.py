"""Each part has a data set, and a transform, of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Digits(Dataset):
    def __init__(self, n=1200, transform=None):
        g = torch.Generator().manual_seed(0)
        proto = torch.rand(10, 1, 12, 12, generator=g)
        self.labels = torch.randint(0, 10, (n,), generator=g)
        self.images = (proto[self.labels] + 0.3 * torch.randn(n, 1, 12, 12, generator=g)).clamp(0, 1)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform:
            img = self.transform(img)
        return img, self.labels[i]


def augment(img):
    img = torch.roll(img, int(torch.randint(-1, 2, ())), dims=2)
    return normalize(img + 0.05 * torch.randn_like(img))


def normalize(img):
    return (img - 0.5) / 0.25


torch.manual_seed(0)
order = torch.randperm(1200).tolist()
train_set = Subset(Digits(transform=augment), order[:1000])
val_set = Subset(Digits(transform=normalize), order[1000:])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(800, 10))
opt = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        good = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(epoch, loss.item(), good / 200)
