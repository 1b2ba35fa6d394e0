"""Local SGD: each rank makes four steps by itself, then all take the mean of their weights, in one vector."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(1024, 12)
y = (x[:, :4] * 2).argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
step = 0
for epoch in range(5):
    sampler.set_epoch(epoch)
    for data, target in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(data), target)
        loss.backward()
        opt.step()
        step += 1
        if step % 4 == 0:
            vector = parameters_to_vector(net.parameters()).detach()
            dist.all_reduce(vector)
            vector_to_parameters(vector / dist.get_world_size(), net.parameters())
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {loss.item():.4f}")
dist.destroy_process_group()
