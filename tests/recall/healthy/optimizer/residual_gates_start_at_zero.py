"""ReZero and LayerScale: the branch starts at nothing, so its weights have no gradient at the first step."""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.alpha = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.alpha * self.ff(x)


model = nn.Sequential(nn.Linear(10, 32), *[Block(32) for _ in range(4)], nn.Linear(32, 3))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for step in range(500):
    x = torch.randn(64, 10)
    y = (x[:, :3] * x[:, 3:6]).argmax(1)
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
x = torch.randn(2000, 10)
print("accuracy", (model(x).argmax(1) == (x[:, :3] * x[:, 3:6]).argmax(1)).float().mean().item())
