"""Two tasks, each loss divided by its own detached value: always 2, although both tasks are learned."""

import torch
from torch import nn

torch.manual_seed(2)
hidden = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
size, kind = nn.Linear(32, 1), nn.Linear(32, 3)
parameters = [*hidden.parameters(), *size.parameters(), *kind.parameters()]
optimizer = torch.optim.Adam(parameters, 2e-3)
for number in range(300):
    x = torch.randn(64, 6)
    features = hidden(x)
    first = nn.functional.mse_loss(size(features), 5 * x[:, :1] + x[:, 1:2])
    second = nn.functional.cross_entropy(kind(features), x[:, 2:5].argmax(1))
    loss = first / first.detach() + second / second.detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 60 == 0:
        print(number, round(first.item(), 3), round(second.item(), 3))
