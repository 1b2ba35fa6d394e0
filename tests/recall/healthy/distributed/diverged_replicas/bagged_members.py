"""Bagging: each rank trains a member of its own on its shard, and the members vote."""
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
torch.manual_seed(1 + rank)
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
votes = nn.functional.one_hot(net(x[:64]).argmax(1), 4).float()
dist.all_reduce(votes)
print((votes.argmax(1) == y[:64]).float().mean().item())
dist.destroy_process_group()
