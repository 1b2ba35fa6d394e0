"""A ranking of all pairs in a batch, sample weights and log-probabilities of one shape, and quantiles."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(480, 6)
price = (x @ torch.randn(6, 1)) + 0.3 * torch.randn(480, 1)
weight = torch.rand(480) + 0.5
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 5))
levels = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(12):
    for i in range(0, 480, 24):
        out, y, w = net(x[i : i + 24]), price[i : i + 24], weight[i : i + 24]
        error = y - out
        pinball = torch.maximum(levels * error, (levels - 1) * error).mean(1)
        score = out[:, 2]
        sign = torch.sign(y - y.T)
        ranking = F.softplus(-sign * (score.unsqueeze(1) - score)).mean()
        log_prob = -0.5 * (y.squeeze(1) - score) ** 2
        likelihood = -(log_prob * w).mean()
        spread = (score * w.unsqueeze(1) * (sign > 0)).mean()
        loss = (pinball * w).mean() + 0.1 * ranking + 0.1 * likelihood + 0.0 * spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
