"""Train a small CNN on handwritten digits, in two processes that share the work.

$ python bugs/35_shared_rows/train.py
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from bugs import lab

# -----------------------------------------------------------------------------
RANKS = 2  # processes; on a machine with GPUs, one for each
BATCH_SIZE = 32  # of each rank
EPOCHS = 3
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


def of_all_ranks(value):
    """A number of each rank, in the order of the ranks."""
    numbers = [torch.zeros((), dtype=torch.float64) for _ in range(RANKS)]
    dist.all_gather(numbers, torch.tensor(value, dtype=torch.float64))
    return [number.item() for number in numbers]


def train(rank, meeting_point):
    torch.set_num_threads(1)  # the ranks share the cores of one machine
    torch.manual_seed(SEED)
    dist.init_process_group(
        "gloo", init_method=meeting_point, rank=rank, world_size=RANKS
    )

    train_set, valid_set = load()
    loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)

    step, equal = 0, 0
    for epoch in range(EPOCHS):
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses, step = of_all_ranks(loss.item()), step + 1
            equal += losses[0] == losses[1]
            if rank == 0 and step % 20 == 0:
                shown = f"rank 0 {losses[0]:.4f}, rank 1 {losses[1]:.4f}"
                print(f"epoch {epoch}, step {step}: loss of {shown}")

    if rank == 0:
        images, labels = valid_set.tensors
        model.eval()
        with torch.no_grad():
            accuracy = (model.module(images).argmax(1) == labels).float().mean().item()
        print(f"steps={step}")
        print(f"eval_accuracy={accuracy:.3f}")
        print(f"equal_losses={equal / step:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(lab.meeting_point(),), nprocs=RANKS)
