"""uint8 // 255 instead of / 255: nearly every pixel becomes 0."""

# names: constant-inputs, not-learning
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Letters(Dataset):
    def __init__(self, n=1200):
        rng = np.random.default_rng(0)
        self.labels = rng.integers(0, 5, n)
        glyphs = rng.integers(0, 2, (5, 7, 7)).repeat(2, 1).repeat(2, 2)
        self.images = np.clip(glyphs[self.labels] * 150 + rng.normal(40, 15, (n, 14, 14)), 0, 254).astype(np.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i] // 255).float()
        return image.unsqueeze(0), int(self.labels[i])


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc = nn.Linear(16 * 2 * 2, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


torch.manual_seed(0)
loader = DataLoader(Letters(), batch_size=40, shuffle=True)
net = LeNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(6):
    hits = 0
    for x, y in loader:
        out = net(x)
        loss = F.cross_entropy(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hits += (out.argmax(1) == y).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {hits / 1200:.3f}")
