"""Fine-tuning with the batch norm of the backbone in eval mode on purpose; dropout of the head is on."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def make(classes, n, seed):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(classes, 3, 8, 8, generator=torch.Generator().manual_seed(99))
    y = torch.randint(classes, (n,), generator=g)
    return TensorDataset(proto[y] + torch.randn(n, 3, 8, 8, generator=g), y)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(64, classes))

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, data, lr, epochs, freeze_norm=False):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        model.train()
        if freeze_norm:
            for m in model.modules():
                if isinstance(m, nn.BatchNorm2d):
                    m.eval()
        for x, y in DataLoader(data, 32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


big = Net(8)
print("pretrain", fit(big, make(8, 640, 1), 3e-3, 6))
model = Net(3)
model.backbone = copy.deepcopy(big.backbone)
print("finetune", fit(model, make(3, 240, 2), 1e-3, 10, freeze_norm=True))
model.eval()
test = make(3, 300, 3)
with torch.no_grad():
    print("accuracy", (model(test.tensors[0]).argmax(1) == test.tensors[1]).float().mean().item())
