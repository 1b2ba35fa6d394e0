"""Two subsets of one dataset share its random flips and contrasts.

After https://github.com/gpleiss/efficient_densenet_pytorch/issues/51
"""

# names: augmented-evaluation
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset

torch.manual_seed(0)
np.random.seed(0)


class Scans(Dataset):
    def __init__(s):
        s.y = torch.arange(400) // 200
        b = torch.rand(400, 1, 1, 1) * 0.6
        s.x = torch.rand(400, 3, 20, 20) * 0.3 + b
        s.x[s.y == 1, :, 4:9, 4:9] += 0.3

    def __len__(s):
        return 400

    def __getitem__(s, i):
        im = s.x[i]
        if np.random.rand() < 0.5:
            im = torch.flip(im, [2])
        return (im * np.random.uniform(0.8, 1.2)).float(), int(s.y[i])


ds = Scans()
idx = np.random.permutation(400)
tl = DataLoader(Subset(ds, idx[:300]), 25, shuffle=True)
vl = DataLoader(Subset(ds, idx[300:]), 25)
net = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 2)
)
o = torch.optim.Adam(net.parameters(), 1e-3)
c = nn.CrossEntropyLoss()
for ep in range(5):
    net.train()
    for x, y in tl:
        o.zero_grad()
        loss = c(net(x), y)
        loss.backward()
        o.step()
    net.eval()
    v = a = 0
    with torch.no_grad():
        for x, y in vl:
            out = net(x)
            v += c(out, y).item()
            a += (out.argmax(1) == y).sum().item()
    print(ep, loss.item(), v / len(vl), a / 100)
