"""A head drawn from a wide normal distribution on a frozen body; two short stages leave it worse than chance."""

# names: initial-loss-off
import torch
from torch import nn

torch.manual_seed(8)
x = torch.randn(1400, 18)
y = (x[:, :6] * x[:, 6:12]).argmax(1)
body = nn.Sequential(nn.Linear(18, 96), nn.Tanh()).requires_grad_(False)
head = nn.Linear(96, 6)
nn.init.normal_(head.weight, std=1.5)
model = nn.Sequential(body, head)
for rate in (1e-3, 3e-4):
    optimizer = torch.optim.SGD(head.parameters(), lr=rate)
    for epoch in range(4):
        for rows in torch.randperm(1200).split(25):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"{rate} {epoch} {loss.item():.3f}")
