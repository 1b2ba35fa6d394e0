"""The Dice loss is computed with the raw outputs of the last convolution.

After https://github.com/jakeret/tf_unet/issues/15 and https://github.com/wolny/pytorch-3dunet/issues/17
"""

# names: logits-as-probabilities, loss-out-of-range
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, inputs, targets):
        inputs = inputs.view(-1)
        targets = targets.view(-1)
        intersection = (inputs * targets).sum()
        dice = (2.0 * intersection + self.smooth) / (inputs.sum() + targets.sum() + self.smooth)
        return 1 - dice


class SegNet(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, ch, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(ch, ch, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(ch, 1, 1),
        )

    def forward(self, x):
        return self.net(x)


def lesions(n, size=20):
    rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.randint(5, size - 5, (n, 2, 1, 1))
    radius = torch.randint(2, 5, (n, 1, 1))
    masks = ((rows - centre[:, 0]) ** 2 + (cols - centre[:, 1]) ** 2 < radius**2).float().unsqueeze(1)
    images = torch.rand(n, 3, size, size) * 0.6
    images[:, :1] += 0.5 * masks
    return TensorDataset(images, masks)


train_dl = DataLoader(lesions(320), batch_size=16, shuffle=True)
valid_dl = DataLoader(lesions(64), batch_size=16)
model = SegNet()
criterion = DiceLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    epoch_loss = 0
    for images, masks in train_dl:
        preds = model(images)
        loss = criterion(preds, masks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    model.eval()
    hit = union = 0
    with torch.no_grad():
        for images, masks in valid_dl:
            pred = torch.sigmoid(model(images)) > 0.5
            hit += (pred & masks.bool()).sum().item()
            union += (pred | masks.bool()).sum().item()
    print(epoch, epoch_loss / len(train_dl), "IoU", hit / max(union, 1))
