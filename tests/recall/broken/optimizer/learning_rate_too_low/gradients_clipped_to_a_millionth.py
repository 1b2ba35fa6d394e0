"""Gradients of a classifier are clipped to a norm of 1e-6, meant as an epsilon; rows are drawn at random."""

# names: learning-rate-too-low not-learning
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
y = torch.randint(4, (1000,))
x = torch.randn(1000, 20) + 2 * nn.functional.one_hot(y, 20)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(300):
    rows = torch.randint(1000, (25,))
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    sgd.zero_grad()
    loss.backward()
    clip_grad_norm_(net.parameters(), 1e-6)
    sgd.step()
    if step % 100 == 0:
        print(step, loss.item())
