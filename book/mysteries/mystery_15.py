"""Classify handwritten digits with two processes, each on half of the rows.

$ torchrun --nproc-per-node 2 mystery_15.py
"""

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 25  # per process
EPOCHS = 4
LEARNING_RATE = 0.2
SEED = 0
# -----------------------------------------------------------------------------


class Reader(nn.Module):
    """Classifies digits and computes its own loss."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, rows):
        return self.layers(rows)

    def loss(self, rows, wanted):
        return nn.functional.cross_entropy(self(rows), wanted)


dist.init_process_group("gloo")
torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:1200], labels[:1200])
sampler = DistributedSampler(train, seed=SEED)
loader = DataLoader(train, batch_size=BATCH_SIZE, sampler=sampler)

model = DistributedDataParallel(Reader())
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    sampler.set_epoch(epoch)
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = model.module.loss(rows, wanted)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch + 1}: loss {loss:.3f}")

with torch.no_grad():
    accuracy = (model(inputs[1200:]).argmax(dim=1) == labels[1200:]).float().mean()
if dist.get_rank() == 0:
    print(f"accuracy={accuracy:.3f}")
dist.destroy_process_group()
