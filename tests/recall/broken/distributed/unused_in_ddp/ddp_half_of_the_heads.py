"""Only the head of the task at hand is used, and DDP waits for the other."""
# names: unused-in-ddp
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(16, 48), nn.ReLU())
        self.classify = nn.Linear(48, 4)
        self.regress = nn.Linear(48, 1)

    def forward(self, x, task):
        hidden = self.trunk(x)
        return self.classify(hidden) if task == "classify" else self.regress(hidden)


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(MultiTask())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.Generator().manual_seed(dist.get_rank())
for step in range(50):
    x = torch.randn(32, 16, generator=rows)
    task = "classify" if step % 2 == 0 else "regress"
    out = model(x, task)
    if task == "classify":
        loss = nn.functional.cross_entropy(out, x[:, :4].argmax(1))
    else:
        loss = nn.functional.mse_loss(out.squeeze(1), x.mean(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
