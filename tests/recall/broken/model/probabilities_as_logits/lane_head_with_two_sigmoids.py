"""The head that says which lanes exist ends in a sigmoid, and so does the loss.

After https://github.com/Turoad/lanedet/issues/32
"""

# names: probabilities-as-logits
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, 2, 1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


class ExistHead(nn.Module):
    def __init__(self, lanes):
        super().__init__()
        self.fc9 = nn.Linear(16 * 4 * 4, 32)
        self.fc10 = nn.Linear(32, lanes)

    def forward(self, x):
        x = torch.relu(self.fc9(x.flatten(1)))
        return torch.sigmoid(self.fc10(x))


class Detector(nn.Module):
    def __init__(self, lanes=4):
        super().__init__()
        self.backbone = Backbone()
        self.exist = ExistHead(lanes)

    def forward(self, x):
        return self.exist(self.backbone(x))


def roads(n):
    lanes = (torch.rand(n, 4) < 0.4).float()
    image = 0.5 * torch.randn(n, 1, 16, 16)
    for lane in range(4):
        image[:, 0, :, 4 * lane + 1] += 1.5 * lanes[:, lane, None]
    return image, lanes


def main():
    torch.manual_seed(1)
    model = Detector()
    loss_fn = nn.BCEWithLogitsLoss()
    optim = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for it in range(300):
        img, exist = roads(32)
        out = model(img)
        loss = loss_fn(out, exist)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if it % 50 == 0:
            print(f"iter {it} exist_loss {loss.item():.4f}")


main()
