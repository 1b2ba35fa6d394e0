"""A second input joins through a layer that starts at zero, and is fine-tuned at a rate of its own."""

import torch
from torch import nn

torch.manual_seed(0)


class Controlled(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
        self.control = nn.Sequential(nn.Linear(4, 16), nn.ReLU())
        self.gate = nn.Linear(16, 3)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(self, x, hint):
        return self.base(x) + self.gate(self.control(hint))


model = Controlled()
for p in model.gate.parameters():
    p.requires_grad = False  # the first stage trains the base alone
for p in model.control.parameters():
    p.requires_grad = False
opt = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=3e-3)
for step in range(200):
    x, hint = torch.randn(64, 6), torch.randn(64, 4)
    loss = nn.functional.cross_entropy(model(x, hint), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", round(loss.item(), 3))
