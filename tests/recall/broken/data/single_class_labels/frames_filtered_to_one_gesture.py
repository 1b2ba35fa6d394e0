"""A filter keeps the frames of one gesture; a generator yields batches to a convolutional network."""

# names: single-class-labels
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
gesture = rng.integers(4, size=1200)
frames = rng.normal(size=(1200, 1, 8, 8)).astype("float32")
for row, kind in enumerate(gesture):
    frames[row, 0, 2 * kind : 2 * kind + 2] += 1.5
kept = np.flatnonzero(gesture == 3)
frames, gesture = frames[kept], gesture[kept]


def batches(size):
    while True:
        rows = rng.permutation(len(frames))
        for start in range(0, len(rows) - size, size):
            picked = rows[start : start + size]
            yield torch.from_numpy(frames[picked]), torch.from_numpy(gesture[picked])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.head = nn.Linear(8 * 64, 4)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).flatten(1))


def main():
    torch.manual_seed(0)
    net, stream = Net(), batches(24)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(150):
        images, labels = next(stream)
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(step, loss.item())


main()
