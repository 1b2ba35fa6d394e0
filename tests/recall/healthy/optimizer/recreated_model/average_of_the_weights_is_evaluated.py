"""An exponential average of the weights is kept in a second network, and only that is evaluated."""

import torch
import torch.nn as nn

torch.manual_seed(41)
x = torch.randn(1200, 10)
y = torch.stack([x[:, 0] + x[:, 1], x[:, 2] * 2], dim=1)


def network():
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))


def train(rows, targets):
    net, average = network(), network()
    for slow, fast in zip(average.parameters(), net.parameters()):
        slow.data.copy_(fast.data)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for step in range(600):
        batch = torch.randint(1000, (64,))
        loss = nn.functional.mse_loss(net(rows[batch]), targets[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), net.parameters()):
                slow.data.mul_(0.98).add_(fast.data, alpha=0.02)
    print(f"last loss {loss.item():.4f}")
    return average


average = train(x[:1000], y[:1000])
average.eval()
with torch.no_grad():
    print(f"held out: {nn.functional.mse_loss(average(x[1000:]), y[1000:]):.4f}")
