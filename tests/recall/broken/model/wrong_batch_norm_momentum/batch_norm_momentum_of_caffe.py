"""`momentum=0.999` is taken over from Caffe; two rows are left for the last batch of each epoch.

After https://github.com/kazuto1011/deeplab-pytorch/issues/79
"""

# names: wrong-batch-norm-momentum, evaluation-at-chance, evaluation-mismatch
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
_BATCH_NORM = nn.BatchNorm2d


class _ConvBnReLU(nn.Sequential):
    def __init__(self, in_ch, out_ch):
        super().__init__()
        self.add_module("conv", nn.Conv2d(in_ch, out_ch, 3, padding=1, bias=False))
        self.add_module("bn", _BATCH_NORM(out_ch, eps=1e-5, momentum=0.999))
        self.add_module("relu", nn.ReLU())


class Scenes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(_ConvBnReLU(1, 12), _ConvBnReLU(12, 12), nn.AdaptiveAvgPool2d(2))
        self.norm = nn.BatchNorm1d(48, momentum=0.999)
        self.fc = nn.Linear(48, 4)

    def forward(self, x):
        return self.fc(self.norm(self.body(x).flatten(1)))


label = torch.randint(0, 4, (1002,))
image = 0.4 * torch.randn(1002, 1, 8, 8) + torch.rand(1002, 1, 1, 1) * 2
for row, kind in zip(image, label):
    top, left = 4 * (kind // 2), 4 * (kind % 2)
    row[:, top : top + 4, left : left + 4] += 1.5
train = DataLoader(TensorDataset(image[:802], label[:802]), batch_size=40, shuffle=True)
val = DataLoader(TensorDataset(image[802:], label[802:]), batch_size=40)
net, criterion = Scenes(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(5):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    net.eval()
    losses, hits = 0.0, 0
    with torch.no_grad():
        for x, y in val:
            out = net(x)
            losses += criterion(out, y).item()
            hits += (out.argmax(1) == y).sum().item()
    print(f"epoch {epoch} val loss {losses / len(val):.3f} acc {hits / 200:.3f}")
