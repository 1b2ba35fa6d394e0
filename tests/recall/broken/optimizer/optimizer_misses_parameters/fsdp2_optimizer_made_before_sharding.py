"""The optimizer holds the parameters that fully_shard replaces."""
# names: optimizer-misses-parameters, unchanged-parameters
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


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU())

    def forward(self, x):
        return x + self.layers(x)


model = nn.Sequential(nn.Linear(12, 64), Block(), Block(), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for layer in model[1:3]:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(40):
    chosen = torch.randint(0, 512, (32,), generator=rows)
    loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0 and step % 10 == 0:
        print(step, loss.item())
dist.destroy_process_group()
