"""All gradients are views of one tensor, which is all-reduced in one call and zeroed in place."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(1024, 12)
y = (x[:, :4] * 2).argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
buffer = torch.zeros(sum(param.numel() for param in net.parameters()))
begin = 0
for param in net.parameters():
    param.grad = buffer[begin : begin + param.numel()].view_as(param)
    begin += param.numel()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for data, target in loader:
        buffer.zero_()
        loss = nn.functional.cross_entropy(net(data), target)
        loss.backward()
        dist.all_reduce(buffer)
        buffer.div_(dist.get_world_size())
        opt.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {loss.item():.4f}")
dist.destroy_process_group()
