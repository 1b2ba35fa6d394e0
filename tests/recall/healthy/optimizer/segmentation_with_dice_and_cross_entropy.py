"""A small U-Net; most pixels are background, and the Dice loss sees to the rest."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Blobs(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.masks = torch.zeros(n, 24, 24)
        for m in self.masks:
            r, c = torch.randint(2, 16, (2,), generator=g).tolist()
            m[r : r + 5, c : c + 5] = 1
        self.images = self.masks[:, None] + 0.5 * torch.randn(n, 1, 24, 24, generator=g)

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.mid = nn.Sequential(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        d = self.down(x)
        m = self.mid(F.max_pool2d(d, 2))
        return self.out(torch.cat([d, self.up(m)], 1)).squeeze(1)


def dice_loss(logits, target, eps=1.0):
    p = logits.sigmoid()
    inter = (p * target).sum((1, 2))
    return 1 - ((2 * inter + eps) / (p.sum((1, 2)) + target.sum((1, 2)) + eps)).mean()


def train_one_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, y) + dice_loss(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def iou(model, loader):
    model.eval()
    inter = union = 0
    for x, y in loader:
        p = model(x) > 0
        inter += (p & y.bool()).sum().item()
        union += (p | y.bool()).sum().item()
    return inter / union


if __name__ == "__main__":
    torch.manual_seed(0)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    train_loader, val_loader = DataLoader(Blobs(256, 0), 16, shuffle=True), DataLoader(Blobs(64, 1), 32)
    for epoch in range(6):
        loss = train_one_epoch(model, train_loader, optimizer)
        print(f"epoch {epoch} loss {loss:.3f} iou {iou(model, val_loader):.3f}")
