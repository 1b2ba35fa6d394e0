"""The model computes in bfloat16; the optimizer steps on float32 copies of its weights."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 2 * torch.randn(4, 32)
model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 4)).bfloat16()
masters = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.Adam(masters, lr=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=200)
for step in range(200):
    labels = torch.randint(4, (64,))
    inputs = (centres[labels] + torch.randn(64, 32)).bfloat16()
    loss = nn.functional.cross_entropy(model(inputs).float(), labels)
    model.zero_grad()
    loss.backward()
    for master, weight in zip(masters, model.parameters()):
        master.grad = weight.grad.float()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for master, weight in zip(masters, model.parameters()):
            weight.copy_(master)
print("loss", loss.item())
