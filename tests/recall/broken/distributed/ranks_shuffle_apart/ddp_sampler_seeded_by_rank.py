"""One seed for each rank, also for the sampler that all must shuffle alike."""
# names: ranks-shuffle-apart
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
seed = 100 + dist.get_rank()
torch.manual_seed(seed)
rows = torch.Generator().manual_seed(0)
signal = torch.randn(960, 24, generator=rows)
target = signal[:, :6].argmax(1)
train = TensorDataset(signal, target)
sampler = DistributedSampler(train, seed=seed)
loader = DataLoader(train, batch_size=24, sampler=sampler, num_workers=0, drop_last=True)
net = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 6)))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5 * len(loader))
for epoch in range(5):
    sampler.set_epoch(epoch)
    for batch, labels in loader:
        loss = nn.functional.cross_entropy(net(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    if dist.get_rank() == 0:
        print(f"{epoch} {loss.item():.3f}")
dist.destroy_process_group()
