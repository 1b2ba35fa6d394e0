"""Time steps and noise from a generator of each rank's own."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
data = torch.eye(8)[torch.randint(0, 8, (2048,))] * 3 + 0.2 * torch.randn(2048, 8)
model = DDP(nn.Sequential(nn.Linear(9, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 8)))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
torch.manual_seed(1000 + rank)  # the model is made: from here on each rank draws for itself
sampler = DistributedSampler(TensorDataset(data), drop_last=True)
loader = DataLoader(TensorDataset(data), batch_size=64, sampler=sampler, drop_last=True)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for (clean,) in loader:
        noise, t = torch.randn_like(clean), torch.rand(len(clean), 1)
        noisy = (1 - t) * clean + t * noise
        loss = nn.functional.mse_loss(model(torch.cat([noisy, t], 1)), noise - clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch}: {loss.item():.3f}")
dist.destroy_process_group()
