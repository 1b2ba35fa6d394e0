"""A policy is wrapped, and its loss comes from `policy.module`."""
# names: bypassed-wrapper, diverged-replicas
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Policy(nn.Module):
    def __init__(self, states=8, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, actions)

    def forward(self, states):
        return self.head(self.body(states)).log_softmax(-1)


dist.init_process_group("gloo")
torch.manual_seed(0)
states = torch.randn(1024, 8)
actions = states[:, :4].argmax(1)
rewards = torch.ones(1024)
dataset = TensorDataset(states, actions, rewards)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
policy = DDP(Policy())
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)

for epoch in range(5):
    sampler.set_epoch(epoch)
    unwrapped = policy.module if isinstance(policy, DDP) else policy
    for observed, chosen, reward in loader:
        logits = unwrapped(observed)
        loss = -(logits.gather(1, chosen[:, None]).squeeze(1) * reward).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"epoch {epoch} loss {loss.item():.4f}")
dist.destroy_process_group()
