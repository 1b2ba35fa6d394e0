"""Two ranks as the tutorial has them, validated by both."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
torch.manual_seed(0)
images = torch.randn(1200, 1, 8, 8)
labels = torch.randint(0, 4, (1200,))
images[torch.arange(1200), 0, labels] += 1.5
train, val = TensorDataset(images[:1024], labels[:1024]), TensorDataset(images[1024:], labels[1024:])
train_sampler, val_sampler = DistributedSampler(train), DistributedSampler(val)
train_loader, val_loader = DataLoader(train, 32, sampler=train_sampler), DataLoader(val, 32, sampler=val_sampler)
model = DDP(
    nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.1), nn.Linear(256, 4),
    )
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(5):
    train_sampler.set_epoch(epoch)  # the validation order may stay as it is
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for x, y in val_loader:
            counts += torch.tensor([(model(x).argmax(1) == y).sum().item(), len(y)])
    dist.all_reduce(counts)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: {counts[0] / counts[1]:.3f}")
dist.destroy_process_group()
