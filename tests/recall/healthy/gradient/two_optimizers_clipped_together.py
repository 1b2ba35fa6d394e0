"""Two optimizers step on one loss; all gradients are clipped once, and once more between the two steps."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
body, head = nn.GRU(6, 24, batch_first=True), nn.Linear(24, 3)
slow = torch.optim.SGD(body.parameters(), lr=0.02, momentum=0.9)
fast = torch.optim.Adam(head.parameters(), lr=5e-3)
everything = list(body.parameters()) + list(head.parameters())
for step in range(150):
    x = torch.randn(32, 10, 6)
    y = x[:, -1, :3].argmax(1)
    _, state = body(x)
    loss = nn.functional.cross_entropy(head(state[-1]), y)
    slow.zero_grad()
    fast.zero_grad()
    loss.backward()
    clip_grad_norm_(everything, 1.0)
    slow.step()
    clip_grad_norm_(everything, 0.5)
    fast.step()
print(loss.item())
