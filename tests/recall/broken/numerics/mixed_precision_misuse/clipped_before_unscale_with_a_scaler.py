"""Mixed precision with gradient clipping; the gradients are clipped while they are still scaled."""
# names: mixed-precision-misuse

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
loss_fn = nn.CrossEntropyLoss()
inputs = torch.randn(1000, 16)
targets = (inputs @ torch.randn(16, 5)).argmax(1)

for epoch in range(5):
    order = torch.randperm(1000)
    for start in range(0, 1000, 50):
        rows = order[start : start + 50]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_fn(model(inputs[rows]), targets[rows])
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
    print(epoch, loss.item())
