"""Image and mask are rotated by one angle."""

import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RandomRot90:
    def __call__(self, *tensors):
        k = random.randint(0, 3)
        out = [torch.rot90(t, k, dims=(-2, -1)) for t in tensors]
        return out[0] if len(out) == 1 else out


class CellDataset(Dataset):
    def __init__(self, n, transform=None, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.imgs, self.segs = [], []
        for _ in range(n):
            seg = torch.zeros(1, 24, 24)
            r, c = torch.randint(0, 16, (2,), generator=g).tolist()
            seg[:, r : r + 7, c : c + 7] = 1.0
            self.imgs.append(0.7 * seg + 0.5 * torch.rand(1, 24, 24, generator=g))
            self.segs.append(seg)
        self.transform = transform

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, idx):
        img, seg = self.imgs[idx], self.segs[idx]
        if self.transform is not None:
            img, seg = self.transform(img, seg)
        return img, seg


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = conv(1, 8), conv(8, 16)
        self.pool, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Sequential(conv(16, 8), nn.Conv2d(8, 1, 1))

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(self.pool(d1))
        return self.last(torch.cat([d1, self.up(d2)], dim=1))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for img, seg in loader:
        optimizer.zero_grad()
        loss = criterion(model(img), seg)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def dice_score(model, loader):
    model.eval()
    inter = size = 0.0
    for img, seg in loader:
        pred = (torch.sigmoid(model(img)) > 0.5).float()
        inter += (pred * seg).sum().item()
        size += pred.sum().item() + seg.sum().item()
    return 2 * inter / max(size, 1.0)


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    train_loader = DataLoader(CellDataset(240, RandomRot90()), batch_size=16, shuffle=True)
    val_loader = DataLoader(CellDataset(60, seed=5), batch_size=16)
    model = TinyUNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        loss = train_one_epoch(model, train_loader, criterion, optimizer)
        print(f"epoch {epoch}: loss {loss:.4f} dice {dice_score(model, val_loader):.3f}")
