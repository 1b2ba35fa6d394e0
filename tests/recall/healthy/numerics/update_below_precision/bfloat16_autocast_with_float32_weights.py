"""bfloat16 by autocast: the weights stay in float32."""

import torch
from torch import nn

torch.manual_seed(0)
centres = 2 * torch.randn(4, 32)
model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(300):
    labels = torch.randint(4, (64,))
    inputs = centres[labels] + torch.randn(64, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
