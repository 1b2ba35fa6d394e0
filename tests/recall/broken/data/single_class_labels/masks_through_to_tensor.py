"""Class numbers of a segmentation mask go through ToTensor, which divides by 255: as integers they are all 0.

After https://github.com/pytorch/vision/issues/2497
"""

# names: single-class-labels
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
rng = np.random.default_rng(0)


def to_tensor(picture):  # as torchvision's does it
    array = torch.from_numpy(picture)
    array = array.permute(2, 0, 1) if array.ndim == 3 else array.unsqueeze(0)
    return array.float() / 255 if array.dtype == torch.uint8 else array


class Scenes(Dataset):
    def __init__(self, count):
        self.pictures, self.masks = [], []
        for _ in range(count):
            mask = np.zeros((16, 16), np.uint8)
            for kind in (1, 2, 3):
                row, column = rng.integers(0, 10, 2)
                mask[row : row + 6, column : column + 6] = kind
            noise = rng.integers(0, 40, (16, 16, 3))
            self.pictures.append((60 * mask[..., None] + noise).clip(0, 255).astype(np.uint8))
            self.masks.append(mask)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return to_tensor(self.pictures[i]), to_tensor(self.masks[i]).squeeze(0).long()


net = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1)
)
loader = DataLoader(Scenes(300), batch_size=16, shuffle=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for pictures, masks in loader:
        loss = criterion(net(pictures), masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.5f}")
