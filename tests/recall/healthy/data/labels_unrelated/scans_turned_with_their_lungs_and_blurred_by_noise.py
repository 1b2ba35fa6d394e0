"""Lungs: a dictionary for each scan; scan and lung are turned by one draw; then the scan alone gets noise."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(7)


class Scans(Dataset):
    def __init__(self, count, augment):
        self.random, self.augment = np.random.default_rng(7), augment
        lines, columns = np.mgrid[0:28, 0:28]
        self.rows = []
        for _ in range(count):
            y, x, a, b = *self.random.uniform(6, 21, 2), *self.random.uniform(3, 6, 2)
            lung = ((lines - y) / a) ** 2 + ((columns - x) / b) ** 2 < 1
            scan = 0.6 * lung + self.random.normal(0, 0.25, (28, 28))
            self.rows.append((scan.astype("float32"), lung.astype("int64")))

    def __len__(self):
        return len(self.rows)

    def turn(self, *images):
        turns = self.random.integers(4)
        return [np.rot90(image, turns).copy() for image in images]

    def __getitem__(self, place):
        scan, lung = self.rows[place]
        if self.augment:
            scan, lung = self.turn(scan, lung)
            scan = scan + self.random.normal(0, 0.05, scan.shape).astype("float32")
        return {"scan": scan[None], "lung": lung}


network = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 2, 1)
)
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
for epoch in range(5):
    for row in DataLoader(Scans(320, True), batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(row["scan"]), row["lung"])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
right = total = 0
with torch.no_grad():
    for row in DataLoader(Scans(60, False), batch_size=20):
        found = network(row["scan"]).argmax(1)
        right += ((found == 1) & (row["lung"] == 1)).sum().item()
        total += ((found == 1) | (row["lung"] == 1)).sum().item()
print("intersection over union", right / total)
