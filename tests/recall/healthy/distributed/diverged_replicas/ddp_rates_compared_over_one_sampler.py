"""Three learning rates, each from a fresh model, over one sampler whose epochs start over."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(800, 10)
y = x[:, :4].argmax(1)
dataset = TensorDataset(x, y)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=20, sampler=sampler)


def train(rate, epochs):
    torch.manual_seed(1)
    model = DDP(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
    return loss.item()


for rate in (0.02, 0.05, 0.1):
    print(f"rank {dist.get_rank()}: {rate} gives {train(rate, epochs=3 if rate == 0.05 else 1):.3f}")
dist.destroy_process_group()
