"""A convolutional network on arrows that point left or right, no two of them ever drawn alike.

Each row is moved, mirrored together with its label, covered in part and made noisy when it is read, by three
sources of random numbers: Python's, PyTorch's and a generator of the dataset's own.

$ python tests/healthy/pytorch/augmentation.py
"""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS, SIDE, MARGIN = 512, 16, 3
EPOCHS = 6


class Arrows(Dataset):
    """Images (1, 16, 16) of arrows that point right (1), or left (0) where they are mirrored."""

    def __init__(self, rows, augment):
        self.rows, self.augment = rows, augment
        self.noise = np.random.default_rng(0)
        across = torch.arange(SIDE - 2 * MARGIN)
        shaft = (across[:, None] - len(across) // 2).abs() <= 1
        head = (across[:, None] - len(across) // 2).abs() <= len(across) - 1 - across
        self.arrow = (shaft | (head & (across > len(across) // 2))).float()

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        image, label = torch.zeros(1, SIDE, SIDE), index % 2
        down, right = (MARGIN, MARGIN) if not self.augment else torch.randint(2 * MARGIN + 1, (2,)).tolist()
        image[0, down : down + len(self.arrow), right : right + len(self.arrow)] = self.arrow
        if self.augment and random.random() < 0.5:
            label = 1 - label
        if self.augment:
            image[0, random.randrange(SIDE)] = 0.0  # one line of it is covered
            image += 0.3 * torch.from_numpy(self.noise.standard_normal(image.shape, dtype=np.float32))
        return (image if label else image.flip(2)), label


def build():
    random.seed(0)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 2),
    )
    loader = DataLoader(Arrows(ROWS, augment=True), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    plain = DataLoader(Arrows(64, augment=False), batch_size=64)

    @torch.no_grad()
    def evaluate():
        images, labels = next(iter(plain))
        scores = model.eval()(images)
        return loss_fn(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss_fn(model(images), labels).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
