"""Generator and discriminator, each in its wrapper, each with its noise."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
generator = DDP(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
discriminator = DDP(nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)), broadcast_buffers=False)
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.functional.binary_cross_entropy_with_logits
torch.manual_seed(50 + rank)
for step in range(120):
    angle = torch.rand(64, 1) * 6.283
    real = torch.cat([angle.cos(), angle.sin()], 1)
    fake = generator(torch.randn(64, 8))
    scores = discriminator(torch.cat([real, fake.detach()]))
    loss = bce(scores, torch.cat([torch.ones(64, 1), torch.zeros(64, 1)]))
    of_discriminator.zero_grad()
    loss.backward()
    of_discriminator.step()
    of_generator.zero_grad()
    bce(discriminator(fake), torch.ones(64, 1)).backward()
    of_generator.step()
    if rank == 0 and step % 40 == 0:
        print(step, loss.item())
dist.destroy_process_group()
