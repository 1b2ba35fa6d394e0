"""Two tasks in turn, with find_unused_parameters for the head that waits."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 48), nn.ReLU())
        self.heads = nn.ModuleDict({"classify": nn.Linear(48, 4), "regress": nn.Linear(48, 1)})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(MultiTask(), find_unused_parameters=True)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(100):
    x = torch.randn(32, 16, generator=rows)
    if step % 2 == 0:
        loss = nn.functional.cross_entropy(model(x, "classify"), x[:, :4].argmax(1))
    else:
        loss = nn.functional.mse_loss(model(x, "regress").squeeze(1), x.mean(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0 and step % 25 == 0:
        print(step, loss.item())
dist.destroy_process_group()
