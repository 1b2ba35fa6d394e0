"""All gradients live in one tensor, to be all-reduced in one call, until zero_grad() sets them to None.

See https://github.com/facebookresearch/fairscale/issues/354.
"""
# names: diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class FlatGradients:
    def __init__(self, params):
        self.params = [param for param in params if param.requires_grad]
        self.buffer = torch.zeros(sum(param.numel() for param in self.params))
        begin = 0
        for param in self.params:
            param.grad = self.buffer[begin : begin + param.numel()].view_as(param)
            begin += param.numel()

    def average(self):
        dist.all_reduce(self.buffer)
        self.buffer.div_(dist.get_world_size())


dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(1024, 12)
y = (x[:, :4] * 2).argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
gradients = FlatGradients(net.parameters())
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for data, target in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(data), target)
        loss.backward()
        gradients.average()
        opt.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {loss.item():.4f}")
dist.destroy_process_group()
