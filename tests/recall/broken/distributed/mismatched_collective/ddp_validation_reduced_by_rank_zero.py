"""Rank 0 validates, and reduces its score with nobody."""
# names: mismatched-collective, stalled-rank
# ranks: 2

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo", timeout=timedelta(seconds=40))
torch.manual_seed(0)
x = torch.randn(640, 10)
y = x[:, :3].argmax(1)
train, val = TensorDataset(x[:512], y[:512]), TensorDataset(x[512:], y[512:])
sampler = DistributedSampler(train)
train_loader, val_loader = DataLoader(train, 16, sampler=sampler), DataLoader(val, 64)
model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def validate():
    correct = torch.zeros(1)
    with torch.no_grad():
        for inputs, labels in val_loader:
            correct += (model.module(inputs).argmax(1) == labels).sum()
    dist.all_reduce(correct)
    return correct.item() / len(val) / dist.get_world_size()


for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print("accuracy", validate())
    dist.barrier()
dist.destroy_process_group()
