"""Ranks that the script spawns itself shuffle the same rows alike, without a sampler that shares them out."""
# names: ranks-share-rows

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

WORLD_SIZE = 2


def find_free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def load_data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(480, 12, generator=generator)
    y = torch.stack([x[:, 0] * x[:, 1], x[:, 2], x[:, 3] - x[:, 4]], dim=1).argmax(1)
    return TensorDataset(x, y)


def train(rank, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD_SIZE)
    torch.manual_seed(42)
    model = DDP(nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    loader = DataLoader(load_data(), batch_size=24, shuffle=True)
    for epoch in range(12):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.item()
        if rank == 0:
            print(f"epoch {epoch} loss {total / len(loader):.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(find_free_port(),), nprocs=WORLD_SIZE, join=True)
