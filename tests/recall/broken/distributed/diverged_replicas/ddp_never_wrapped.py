"""The training was moved to two processes: process group, sampler, seeds, and no wrapper around the model.

See https://github.com/NVIDIA/Megatron-LM/issues/1685, where an example did not average its gradients either.
"""
# names: diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(42)
x = torch.randn(1500, 20)
y = (x[:, :6] @ torch.randn(6, 4)).argmax(1)
train_set, test_set = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:], y[1200:])
sampler = DistributedSampler(train_set)
train_loader = DataLoader(train_set, batch_size=25, sampler=sampler)
test_loader = DataLoader(test_set, batch_size=50, sampler=DistributedSampler(test_set, shuffle=False))
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for inputs, labels in test_loader:
            counts += torch.tensor([(model(inputs).argmax(1) == labels).sum(), len(labels)])
    dist.all_reduce(counts)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: test accuracy {(counts[0] / counts[1]).item():.3f}")
dist.destroy_process_group()
