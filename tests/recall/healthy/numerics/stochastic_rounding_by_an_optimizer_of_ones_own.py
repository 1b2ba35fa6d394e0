"""bfloat16 weights, an optimizer that rounds at random, and a small rate; half of the network is frozen."""

import torch
from torch import nn


class StochasticSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                exact = p.float() - group["lr"] * p.grad.float()
                noise = torch.randint(0, 1 << 16, exact.shape, dtype=torch.int32)
                bits = (exact.view(torch.int32) + noise) & ~0xFFFF
                p.copy_(bits.view(torch.float32).bfloat16())


torch.manual_seed(0)
centres = 2 * torch.randn(4, 32)
backbone = nn.Sequential(nn.Linear(32, 64), nn.GELU()).bfloat16().requires_grad_(False)
head = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)).bfloat16()
optimizer = StochasticSGD(head.parameters(), lr=5e-3)
for step in range(400):
    labels = torch.randint(4, (64,))
    inputs = (centres[labels] + torch.randn(64, 32)).bfloat16()
    loss = nn.functional.cross_entropy(head(backbone(inputs)).float(), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
