"""Each rank stops by the validation loss of its own rows."""
# names: uneven-batches, mismatched-collective, stalled-rank
# ranks: 2

from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class EarlyStopping:
    def __init__(self, patience=2):
        self.best, self.patience, self.bad = float("inf"), patience, 0

    def __call__(self, loss):
        self.bad = 0 if loss < self.best else self.bad + 1
        self.best = min(loss, self.best)
        return self.bad >= self.patience


dist.init_process_group("gloo", timeout=timedelta(seconds=40))
torch.manual_seed(2)
x = torch.randn(240, 20)
y = ((x[:, 0] + torch.randn(240)) > 0).float()
train, val = TensorDataset(x[:160], y[:160]), TensorDataset(x[160:], y[160:])
sampler = DistributedSampler(train)
train_loader = DataLoader(train, 8, sampler=sampler)
val_loader = DataLoader(val, 8, sampler=DistributedSampler(val, shuffle=False))
model = DDP(nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
stop = EarlyStopping()
for epoch in range(60):
    sampler.set_epoch(epoch)
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs).squeeze(1), labels)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = sum(
            nn.functional.binary_cross_entropy_with_logits(model.module(a).squeeze(1), b).item()
            for a, b in val_loader
        )
    if stop(val_loss):
        print(f"rank {dist.get_rank()} stops after epoch {epoch}")
        break
dist.destroy_process_group()
