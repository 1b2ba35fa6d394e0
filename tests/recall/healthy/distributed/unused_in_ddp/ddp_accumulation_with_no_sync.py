"""Gradients accumulate without averaging, forward and backward, until the last."""
# ranks: 2

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
weights = torch.randn(12, 1)
model = DDP(nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
rows = torch.Generator().manual_seed(rank)
ACCUMULATE = 4
for step in range(80):
    for micro in range(ACCUMULATE):
        x = torch.randn(16, 12, generator=rows)
        with contextlib.nullcontext() if micro == ACCUMULATE - 1 else model.no_sync():
            loss = nn.functional.mse_loss(model(x), x @ weights) / ACCUMULATE
            loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0 and step % 20 == 0:
        print(step, loss.item() * ACCUMULATE)
dist.destroy_process_group()
