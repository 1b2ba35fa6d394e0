"""Wrapped first, and given a head for the new classes afterwards."""
# names: bypassed-wrapper, diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(self.features(x))


dist.init_process_group("gloo")
torch.manual_seed(3)
x = torch.randn(800, 20)
y = (x @ torch.randn(20, 6)).argmax(1)
pretrained = Net(classes=100)
model = DDP(pretrained)
model.module.fc = nn.Linear(64, 6)  # six classes in our data
train_sampler = DistributedSampler(TensorDataset(x, y), shuffle=True)
loader = DataLoader(TensorDataset(x, y), batch_size=20, sampler=train_sampler)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    train_sampler.set_epoch(epoch)
    correct = 0
    for data, target in loader:
        output = model(data)
        loss = nn.functional.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (output.argmax(1) == target).sum().item()
    if dist.get_rank() == 0:
        print(f"{epoch}: {correct / len(train_sampler):.3f}")
dist.destroy_process_group()
