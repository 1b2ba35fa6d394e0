"""Every rank seeds itself alike and shuffles the whole dataset by itself."""
# names: ranks-share-rows
# ranks: 2

import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main():
    dist.init_process_group(backend="gloo")
    seed_everything(42)
    images = torch.randn(1024, 1, 8, 8)
    labels = torch.randint(0, 5, (1024,))
    images[torch.arange(1024), 0, labels] += 1.5
    train_loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True, drop_last=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 5)
    )
    model = DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * dist.get_world_size(), momentum=0.9)
    for epoch in range(4):
        for image, label in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(image), label)
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, loss.item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
