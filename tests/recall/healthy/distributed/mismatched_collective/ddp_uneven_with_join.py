"""The ranks have different numbers of rows, and join() answers for the one that is done."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
x = torch.randn(400 + 150 * rank, 10)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=25, shuffle=True)
model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    with Join([model]):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
    print(f"rank {rank} epoch {epoch} {len(loader)} batches {loss.item():.3f}")
dist.barrier()
dist.destroy_process_group()
