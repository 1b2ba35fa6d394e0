"""Train a small CNN on handwritten digits in two processes; validate after each epoch.

$ python bugs/31_mismatched_collective/train.py
"""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from bugs import lab

# -----------------------------------------------------------------------------
RANKS = 2  # processes; on a machine with GPUs, one for each
PATIENCE = timedelta(seconds=8)  # for the other ranks; gloo's default: half an hour
BATCH_SIZE = 32  # of each rank
EPOCHS = 4
LEARNING_RATE = 0.1
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------


def load():
    """Return images of 8 x 8 pixels with labels: 4/5 to train on, 1/5 to validate."""
    images, labels = lab.digits()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SEED))
    train, valid = order.tensor_split([len(order) * 4 // 5])
    return [TensorDataset(images[rows], labels[rows]) for rows in (train, valid)]


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def evaluate(model, loader, group):
    """The accuracy on all validation images, of which each rank looks at its share."""
    counts = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        for images, labels in loader:
            counts += torch.tensor(
                [(model(images).argmax(1) == labels).sum(), len(labels)]
            )
    model.train()
    dist.all_reduce(counts, group=group)
    return (counts[0] / counts[1]).item()


def train(rank, meeting_point):
    torch.set_num_threads(1)  # the ranks share the cores of one machine
    torch.manual_seed(SEED)
    dist.init_process_group(
        "gloo", init_method=meeting_point, rank=rank, world_size=RANKS
    )
    evaluation = dist.new_group(timeout=PATIENCE)

    train_set, valid_set = load()
    sampler = DistributedSampler(train_set, seed=SEED)
    train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler)
    valid_sampler = DistributedSampler(valid_set, shuffle=False)
    valid_loader = DataLoader(valid_set, batch_size=BATCH_SIZE, sampler=valid_sampler)
    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for images, labels in train_loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:  # one line for each epoch is enough
            accuracy = evaluate(model.module, valid_loader, evaluation)
            print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.3f}")

    if rank == 0:
        print(f"eval_accuracy={accuracy:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(lab.meeting_point(),), nprocs=RANKS)
