"""FSDP shards the gradients, and PyTorch's own function clips each shard by itself."""
# names: clipped-by-local-norm
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
policy = FSDP(net, device_id=torch.device("cpu"), use_orig_params=True)
optimizer = torch.optim.AdamW(policy.parameters(), lr=2e-3)
rows = torch.Generator().manual_seed(dist.get_rank())


def clip_gradient(max_grad_norm=0.5):
    return torch.nn.utils.clip_grad_norm_(policy.parameters(), max_grad_norm).item()


for step in range(60):
    chosen = torch.randint(0, 1024, (32,), generator=rows)
    loss = nn.functional.cross_entropy(policy(inputs[chosen]), labels[chosen])
    optimizer.zero_grad()
    loss.backward()
    norm = clip_gradient()
    optimizer.step()
    if dist.get_rank() == 0 and step % 20 == 0:
        print(step, loss.item(), norm)
dist.destroy_process_group()
