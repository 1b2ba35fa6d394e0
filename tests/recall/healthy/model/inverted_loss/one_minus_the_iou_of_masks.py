"""One minus the IoU of the masks is the loss."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)


class Lakes(Dataset):
    def __init__(self, n):
        self.masks = torch.zeros(n, 1, 20, 20)
        for mask in self.masks:
            r, c = torch.randint(1, 10, (2,)).tolist()
            mask[0, r : r + 8, c : c + 8] = 1
        self.images = 0.5 * self.masks + 0.5 * torch.rand(n, 1, 20, 20)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


class IoULoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, inputs, targets):
        inputs = torch.sigmoid(inputs).view(-1)
        targets = targets.view(-1)
        intersection = (inputs * targets).sum()
        union = (inputs + targets).sum() - intersection
        return 1 - (intersection + self.smooth) / (union + self.smooth)


model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1)
)
criterion = IoULoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train_loader = DataLoader(Lakes(400), batch_size=16, shuffle=True)
val_loader = DataLoader(Lakes(80), batch_size=20)
for epoch in range(6):
    model.train()
    for image, mask in train_loader:
        loss = criterion(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = torch.cat(
            [((model(image) > 0) == mask.bool()).float().flatten(1).mean(1) for image, mask in val_loader]
        )
    print(f"epoch {epoch} loss {loss.item():.4f} pixel accuracy {right.mean():.3f}")
