"""Sharded first, optimizer afterwards, clipped by the norm over all shards."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
inputs = torch.randn(512, 12)
labels = inputs[:, :4].argmax(1)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
for layer in model:
    if isinstance(layer, nn.Linear):
        fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(60):
    chosen = torch.randint(0, 512, (32,), generator=rows)
    loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0 and step % 20 == 0:
        print(step, loss.item(), norm.item())
dist.destroy_process_group()
