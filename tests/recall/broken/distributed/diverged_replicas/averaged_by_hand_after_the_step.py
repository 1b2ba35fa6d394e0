"""The gradients are averaged by hand, one line too late."""
# names: diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


dist.init_process_group("gloo")
torch.manual_seed(1234)
x = torch.randn(1024, 10)
y = x[:, :4].argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
model = nn.Sequential(nn.Linear(10, 50), nn.ReLU(), nn.Linear(50, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
for epoch in range(5):
    sampler.set_epoch(epoch)
    epoch_loss = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        epoch_loss += loss.item()
        loss.backward()
        optimizer.step()
        average_gradients(model)
    print("rank", dist.get_rank(), "epoch", epoch, epoch_loss / len(loader))
dist.destroy_process_group()
