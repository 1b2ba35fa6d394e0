"""A data set keeps `self.seed` and seeds numpy with it before each random crop: all crops are the same corner.

After https://github.com/torch-points3d/torch-points3d/pull/247
"""

# names: repeated-worker-randomness
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Clouds(Dataset):
    def __init__(self, count, seed=1234):
        rng = np.random.default_rng(0)
        self.seed = seed
        self.labels = rng.integers(0, 3, count)
        self.points = rng.normal(size=(count, 40, 3)).astype("float32")
        self.points[..., 2] *= (self.labels[:, None] + 1) / 2

    def __len__(self):
        return len(self.labels)

    def jitter(self, points):
        np.random.seed(self.seed)
        shift = np.random.uniform(-0.3, 0.3, size=3)
        noise = np.random.normal(0, 0.05, size=points.shape)
        return (points + shift + noise).astype("float32")

    def __getitem__(self, index):
        return self.jitter(self.points[index]), int(self.labels[index])


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU())
        self.out = nn.Linear(64, 3)

    def forward(self, x):
        return self.out(self.mlp(x).amax(1))


loader = DataLoader(Clouds(800), batch_size=32, shuffle=True)
model = PointNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    for points, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), label)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
