"""Train a network in two processes that recognises a digit, and whether it is odd.

$ python solutions/33_unused_branch/train.py
"""

import os

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
PARITY_WEIGHT = 0.0  # of the second task in the loss: off, to see what it contributes
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


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(16 * 4 * 4, 64), nn.ReLU(),
        )  # fmt: skip
        self.digit = nn.Linear(64, 10)
        self.parity = nn.Linear(64, 2).requires_grad_(PARITY_WEIGHT > 0)

    def forward(self, images):
        features = self.features(images)
        return self.digit(features), self.parity(features)


def build_model():
    return Network()


def train(rank, meeting_point):
    torch.set_num_threads(1)  # the ranks share the cores of one machine
    torch.manual_seed(SEED)
    dist.init_process_group(
        "gloo", init_method=meeting_point, rank=rank, world_size=RANKS
    )

    train_set, valid_set = load()
    sampler = DistributedSampler(train_set, seed=SEED)
    loader = DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler)
    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)

    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            digit, parity = model(images)
            loss = cross_entropy(digit, labels)
            if PARITY_WEIGHT > 0:
                loss = loss + PARITY_WEIGHT * cross_entropy(parity, labels % 2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    if rank == 0:
        images, labels = valid_set.tensors
        model.eval()
        with torch.no_grad():
            accuracy = (
                (model.module(images)[0].argmax(1) == labels).float().mean().item()
            )
        print(f"eval_accuracy={accuracy:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(lab.meeting_point(),), nprocs=RANKS)
