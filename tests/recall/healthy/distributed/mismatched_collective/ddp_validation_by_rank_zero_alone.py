"""Rank 0 validates by the bare module, saves it, and the others wait at a barrier."""
# ranks: 2

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(640, 10)
y = x[:, :3].argmax(1)
train, val = TensorDataset(x[:512], y[:512]), TensorDataset(x[512:], y[512:])
sampler = DistributedSampler(train, seed=7)
train_loader, val_loader = DataLoader(train, 16, sampler=sampler, drop_last=True), DataLoader(val, 64)
model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
best = 0.0
with tempfile.TemporaryDirectory() as folder:
    for epoch in range(4):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                hits = sum((model.module(a).argmax(1) == b).sum().item() for a, b in val_loader) / len(val)
            if hits > best:
                best = hits
                torch.save(model.module.state_dict(), Path(folder, "best.pt"))
            print(f"epoch {epoch}: {hits:.3f}")
        dist.barrier()
dist.destroy_process_group()
