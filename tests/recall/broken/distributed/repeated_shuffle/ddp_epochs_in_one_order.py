"""A DistributedSampler shuffles, and is never told the epoch."""
# names: repeated-shuffle
# ranks: 2

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

LOCAL_RANK = int(os.environ["LOCAL_RANK"])


class Ratings(Dataset):
    def __init__(self, rows):
        generator = torch.Generator().manual_seed(8)
        self.users = torch.randint(0, 60, (rows,), generator=generator)
        self.items = torch.randint(0, 40, (rows,), generator=generator)
        taste, kind = (torch.randn(n, 4, generator=generator) for n in (60, 40))
        self.scores = (taste[self.users] * kind[self.items]).sum(1) / 2

    def __len__(self):
        return len(self.scores)

    def __getitem__(self, row):
        return self.users[row], self.items[row], self.scores[row]


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(60, 8), nn.Embedding(40, 8)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(1)


dist.init_process_group("gloo")
torch.manual_seed(0)
dataset = Ratings(2000)
sampler = DistributedSampler(dataset, shuffle=True)
loader = DataLoader(dataset, batch_size=50, shuffle=False, sampler=sampler, pin_memory=False)
model = DistributedDataParallel(Factors())
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(5):
    total = 0.0
    for user, item, score in loader:
        loss = nn.functional.mse_loss(model(user, item), score)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if LOCAL_RANK == 0:
        print(f"epoch {epoch}: {total / len(loader):.4f}")
dist.destroy_process_group()
