"""A small U-Net takes the Dice coefficient itself for its loss.

After https://github.com/akirasosa/mobile-semantic-segmentation/issues/24
"""

# names: inverted-loss, not-learning
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
image = F.avg_pool2d(torch.rand(160, 3, 68, 68), 5, stride=1)
mask = (image.mean(dim=1, keepdim=True) > image.mean() + 0.01).float()
loader = DataLoader(TensorDataset(image, mask), batch_size=8, shuffle=True)


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.last = nn.Conv2d(11, 1, 1)

    def forward(self, x):
        deep = F.relu(self.middle(F.relu(self.down(x))))
        return torch.sigmoid(self.last(torch.cat([self.up(deep), x], dim=1)))


def dice_loss(pred, target, eps=1e-6):
    overlap = (pred * target).sum(dim=(1, 2, 3))
    size = pred.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return ((2 * overlap + eps) / (size + eps)).mean()


net = TinyUNet()
optim = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    for x, y in loader:
        loss = dice_loss(net(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
    print(epoch, round(loss.item(), 4))
