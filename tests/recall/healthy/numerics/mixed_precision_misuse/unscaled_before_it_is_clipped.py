"""A loss scaler, unscale_, clipping, in the order of PyTorch's own examples, with accumulation."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu")
inputs = torch.randn(1200, 16)
targets = (inputs @ torch.randn(16, 5)).argmax(1)
ACCUMULATE = 2

for epoch in range(5):
    for number, rows in enumerate(torch.randperm(1200).split(50)):
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows]) / ACCUMULATE
        scaler.scale(loss).backward()
        if (number + 1) % ACCUMULATE == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print(epoch, ACCUMULATE * loss.item())
