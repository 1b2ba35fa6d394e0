"""`random_split`, and then `train_set.transform = ...`: the subset has no such thing, the data set underneath has.

After https://github.com/pyg-team/pytorch_geometric/issues/8557
"""

# names: setting-without-effect
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(0)


class Plants(Dataset):
    def __init__(self, count, transform=None):
        self.y = torch.randint(0, 3, (count,))
        self.x = torch.randint(0, 120, (count, 1, 10, 10), dtype=torch.uint8)
        for row, kind in zip(self.x, self.y):
            row[:, 3 * kind : 3 * kind + 3] += 100
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i].float()
        if self.transform is not None:
            x = self.transform(x)
        return x, self.y[i]


def normalise(x):
    return (x / 255 - 0.3) / 0.25


def augment(x):
    return normalise(x) + 0.2 * torch.randn_like(x)


dataset = Plants(900)
train_set, val_set = random_split(dataset, [700, 200])
train_set.transform = augment
val_set.transform = normalise
train_loader, val_loader = DataLoader(train_set, batch_size=28, shuffle=True), DataLoader(val_set, batch_size=50)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(800, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(5):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch} loss {loss.item():.3f} val {right / 200:.3f}")
