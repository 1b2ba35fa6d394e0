"""DiLoCo: each rank trains by itself; the mean of what they have moved is the gradient of an outer optimizer."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
rows = torch.Generator().manual_seed(rank)
x = torch.randn(1024, 12, generator=rows)
y = (x[:, :4] * 2).argmax(1)
inner = torch.optim.SGD(net.parameters(), lr=0.1)
shared = [param.detach().clone().requires_grad_() for param in net.parameters()]
outer = torch.optim.SGD(shared, lr=0.7, momentum=0.9, nesterov=True)
for round_ in range(40):
    for _ in range(1 if round_ < 20 else 3):
        chosen = torch.randint(0, 1024, (32,), generator=rows)
        loss = nn.functional.cross_entropy(net(x[chosen]), y[chosen])
        inner.zero_grad()
        loss.backward()
        inner.step()
    for whole, param in zip(shared, net.parameters(), strict=True):
        whole.grad = whole.detach() - param.detach()
    moved = torch.cat([whole.grad.flatten() for whole in shared])
    dist.all_reduce(moved)
    moved /= dist.get_world_size()
    for whole, part in zip(shared, moved.split([whole.numel() for whole in shared]), strict=True):
        whole.grad.copy_(part.view_as(whole))
    outer.step()
    with torch.no_grad():
        for whole, param in zip(shared, net.parameters(), strict=True):
            param.copy_(whole)
    if rank == 0 and round_ % 10 == 0:
        print(round_, loss.item())
dist.destroy_process_group()
