"""Noise and time steps are drawn after the same seed on every rank."""
# names: ranks-share-randomness
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Velocity(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(9, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 8))

    def forward(self, x, t):
        return self.layers(torch.cat([x, t[:, None]], 1))


def main(seed=0):
    dist.init_process_group("gloo")
    torch.manual_seed(seed)
    centres = torch.eye(8) * 3
    data = centres[torch.randint(0, 8, (2048,))] + 0.2 * torch.randn(2048, 8)
    sampler = DistributedSampler(TensorDataset(data), shuffle=True, drop_last=True)
    loader = DataLoader(TensorDataset(data), batch_size=64, sampler=sampler, drop_last=True)
    model = DDP(Velocity())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for (x1,) in loader:
            x0 = torch.randn_like(x1)
            t = torch.rand(len(x1))
            xt = (1 - t[:, None]) * x0 + t[:, None] * x1
            loss = (model(xt, t) - (x1 - x0)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.3f}")
    dist.barrier()
    dist.destroy_process_group()


main()
