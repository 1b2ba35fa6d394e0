"""Gradients accumulate, and DDP is told to average them between forward and backward."""
# names: diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1337)
text = torch.randint(0, 16, (4096,)).cumsum(0) % 32
B, T, GRAD_ACCUM_STEPS = 8, 16, 4


class Batches:
    def __init__(self):
        self.position = B * T * rank

    def next_batch(self):
        piece = text[self.position : self.position + B * T + 1]
        self.position += B * T * world
        if self.position + B * T * world + 1 > len(text):
            self.position = B * T * rank
        return piece[:-1].view(B, T), piece[1:].view(B, T)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(32, 64)
        self.rnn = nn.GRU(64, 64, batch_first=True)
        self.head = nn.Linear(64, 32)

    def forward(self, ids):
        return self.head(self.rnn(self.embedding(ids))[0])


batches = Batches()
model = DDP(Model())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(40):
    optimizer.zero_grad(set_to_none=True)
    for micro_step in range(GRAD_ACCUM_STEPS):
        x, y = batches.next_batch()
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten()) / GRAD_ACCUM_STEPS
        model.require_backward_grad_sync = micro_step == GRAD_ACCUM_STEPS - 1
        loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if rank == 0 and step % 10 == 0:
        print(f"step {step} | loss {loss.item() * GRAD_ACCUM_STEPS:.4f} | norm {norm:.3f}")
dist.destroy_process_group()
