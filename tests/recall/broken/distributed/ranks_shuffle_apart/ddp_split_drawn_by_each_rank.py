"""Seeds differ by rank for the sake of augmentation, and so do the splits."""
# names: ranks-shuffle-apart
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, random_split


def set_seed(seed):
    torch.manual_seed(seed + dist.get_rank() * 12345)  # augmentations of their own


dist.init_process_group("gloo")
set_seed(1234)
rows = torch.Generator().manual_seed(0)
observations = torch.randn(1200, 12, generator=rows)
targets = observations @ torch.randn(12, 3, generator=rows)
dataset = TensorDataset(observations, targets)
train_set, val_set = random_split(dataset, [1000, 200])
train_sampler = DistributedSampler(train_set, shuffle=True)
train_loader = DataLoader(train_set, batch_size=50, sampler=train_sampler)
val_loader = DataLoader(val_set, batch_size=50, sampler=DistributedSampler(val_set, shuffle=False))
model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    train_sampler.set_epoch(epoch)
    model.train()
    for x, y in train_loader:
        x = x + 0.01 * torch.randn_like(x)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = torch.stack([nn.functional.mse_loss(model(x), y) for x, y in val_loader]).mean()
    dist.all_reduce(errors)
    if dist.get_rank() == 0:
        print(f"epoch {epoch} validation {errors.item() / dist.get_world_size():.4f}")
dist.destroy_process_group()
