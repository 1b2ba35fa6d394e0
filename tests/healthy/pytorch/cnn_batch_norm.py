"""A convolutional network with batch norm, on images of stripes in four directions.

$ python tests/healthy/pytorch/cnn_batch_norm.py
"""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE, CLASSES = 16, 4
EPOCHS = 3


def stripes(rows, seed):
    """Return images (rows, 3, 16, 16) and labels (rows,): the direction of the stripes."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    angle = labels * math.pi / CLASSES
    phase = 2 * math.pi * torch.rand(rows, generator=generator)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    along = x * angle.cos()[:, None, None] + y * angle.sin()[:, None, None]
    images = torch.sin(along + phase[:, None, None])[:, None].repeat(1, 3, 1, 1)
    return images + 0.5 * torch.randn(images.shape, generator=generator), labels


def build():
    torch.manual_seed(0)
    layers = []
    for channels_in, channels_out in ((3, 16), (16, 32)):
        layers += [
            nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES))
    loader = DataLoader(TensorDataset(*stripes(1024, seed=1)), batch_size=64, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    return model, loader, nn.CrossEntropyLoss(), optimizer


def train(model, loader, loss_fn, optimizer):
    images, labels = stripes(256, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(images)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        model.train()
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
