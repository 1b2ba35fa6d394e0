"""Files of different lengths, restarted when they end, for as many steps as all ranks make."""
# ranks: 2

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
        for file in self.files:
            generator = torch.Generator().manual_seed(int(file[-1]))
            for _ in range(FILES[file]):
                x = torch.randn(10, generator=generator)
                yield x, (x[:3].sum() > 0).long()


def endless(loader):
    while True:
        yield from loader


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
batches = endless(DataLoader(Shards(rank, world), batch_size=30))
model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(90):
    x, y = next(batches)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 30 == 0:
        print(step, loss.item())
dist.barrier()
dist.destroy_process_group()
