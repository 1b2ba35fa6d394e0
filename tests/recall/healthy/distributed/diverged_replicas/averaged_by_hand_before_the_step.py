"""Gradients averaged by hand, in time, after one broadcast of the weights."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def average_gradients(model):
    flat = torch.cat([param.grad.flatten() for param in model.parameters()])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    begin = 0
    for param in model.parameters():
        param.grad.copy_(flat[begin : begin + param.numel()].view_as(param))
        begin += param.numel()


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
rows = torch.Generator().manual_seed(0)
x = torch.randn(1024, 10, generator=rows)
y = x[:, :4].argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
model = nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 4))
for param in model.parameters():
    dist.broadcast(param.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for data, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        average_gradients(model)
        optimizer.step()
    print("rank", dist.get_rank(), "epoch", epoch, loss.item())
dist.destroy_process_group()
