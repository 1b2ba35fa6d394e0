"""Segmentation: a class for each pixel, from a small fully convolutional network.

$ python tests/healthy/pytorch/segmentation.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, CLASSES = 24, 3
EPOCHS = 4


class Shapes(Dataset):
    """A noisy image (1, 24, 24) with a bright square and a dark disc, and its mask (24, 24) of classes 0, 1, 2."""

    def __init__(self, size, seed):
        self.size, self.seed = size, seed

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 100_000 + index)
        y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
        square_y, square_x, disc_y, disc_x = torch.randint(4, SIDE - 4, (4,), generator=generator).tolist()
        mask = torch.zeros(SIDE, SIDE, dtype=torch.long)
        mask[((y - square_y).abs() < 4) & ((x - square_x).abs() < 4)] = 1
        mask[(y - disc_y) ** 2 + (x - disc_x) ** 2 < 16] = 2
        colours = torch.tensor([0.0, 1.0, -1.0])
        return (colours[mask] + 0.5 * torch.randn(SIDE, SIDE, generator=generator))[None], mask


def build():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, CLASSES, 1),
    )  # fmt: skip
    loader = DataLoader(Shapes(256, seed=1), batch_size=16, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=5e-3)


def train(model, loader, loss_fn, optimizer):
    held_out = Shapes(64, seed=2)
    images, masks = (torch.stack(part) for part in zip(*(held_out[i] for i in range(len(held_out))), strict=True))

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(images)
        return loss_fn(logits, masks).item(), (logits.argmax(1) == masks).float().mean().item()

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
