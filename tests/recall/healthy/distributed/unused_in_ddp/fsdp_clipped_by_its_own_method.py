"""FullyShardedDataParallel, clipped by its own method."""
# ranks: 2

import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

warnings.filterwarnings("ignore")
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(1024, 16)
labels = (inputs @ torch.randn(16, 10)).argmax(1)
net = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
model = FSDP(net, device_id=torch.device("cpu"), use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(60):
    chosen = torch.randint(0, 1024, (32,), generator=rows)
    loss = nn.functional.cross_entropy(model(inputs[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    model.clip_grad_norm_(0.5)
    optimizer.step()
    if dist.get_rank() == 0 and step % 20 == 0:
        print(step, loss.item())
dist.destroy_process_group()
