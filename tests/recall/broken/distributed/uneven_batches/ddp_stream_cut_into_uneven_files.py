"""A stream gives each rank its own files, which are not equally long."""
# names: uneven-batches
# ranks: 2

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

FILES = {"part-0": 420, "part-1": 300, "part-2": 410, "part-3": 330}


class Shards(IterableDataset):
    def __init__(self, rank, world):
        self.files = sorted(FILES)[rank::world]

    def __iter__(self):
        for number, file in enumerate(self.files):
            generator = torch.Generator().manual_seed(number)
            for _ in range(FILES[file]):
                x = torch.randn(10, generator=generator)
                yield x, (x[:3].sum() > 0).long()


dist.init_process_group("gloo", timeout=timedelta(seconds=40))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
loader = DataLoader(Shards(rank, world), batch_size=30)
model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank}, epoch {epoch}: {loss.item():.3f}")
dist.barrier()
dist.destroy_process_group()
