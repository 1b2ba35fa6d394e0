"""A helper fetches each batch from a new iterator: always the first 32 of 1,600 rows of a Dataset of its own."""
# names: repeated-batch

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 12, generator=g)
        self.y = (self.x[:, :4].sum(1) > 0).long() + 2 * (self.x[:, 4:8].sum(1) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
train_loader = DataLoader(Points(1600, 1), batch_size=32)
val_loader = DataLoader(Points(400, 2), batch_size=100)


def get_batch():
    return next(iter(train_loader))


model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(400):
    inputs, targets = get_batch()
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            hits = sum((model(a).argmax(1) == b).sum().item() for a, b in val_loader)
        model.train()
        print(step + 1, loss.item(), hits / 400)
