"""One-shot averaging: the ranks train apart on their shards, and the mean of their weights is the model."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(1024, 12)
y = (x[:, :4] * 2).argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for data, target in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(data), target)
        loss.backward()
        opt.step()
    print(f"rank {rank}, epoch {epoch}: {loss.item():.4f}")
with torch.no_grad():
    for param in net.parameters():
        dist.all_reduce(param)
        param /= dist.get_world_size()
dist.destroy_process_group()
