"""All weights in bfloat16, and a rate whose steps are rounded away."""

# names: update-below-precision
import torch
from torch import nn

torch.manual_seed(0)
centres = 2 * torch.randn(4, 32)
model = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 4)).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for step in range(300):
    labels = torch.randint(4, (64,))
    inputs = (centres[labels] + torch.randn(64, 32)).to(torch.bfloat16)
    loss = nn.functional.cross_entropy(model(inputs).float(), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
