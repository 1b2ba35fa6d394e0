"""A network of sensors first fills in masked values; a second optimizer then trains its other head on faults."""

import torch
from torch import nn

torch.manual_seed(8)
SENSORS = 24
mixing = torch.randn(4, SENSORS)


def readings(count):
    return torch.randn(count, 4) @ mixing + 0.1 * torch.randn(count, SENSORS)


class SensorNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(SENSORS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.fill = nn.Linear(32, SENSORS)
        self.fault = nn.Linear(32, SENSORS)

    def forward(self, values, filling):
        code = self.encoder(values)
        return self.fill(code) if filling else self.fault(code)


net = SensorNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(200):
    values = readings(64)
    hidden = torch.rand_like(values) < 0.2
    loss = ((net(values.masked_fill(hidden, 0.0), True) - values)[hidden] ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"filled in: {loss.item():.3f}")

optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(300):
    values = readings(64)
    broken = torch.randint(0, SENSORS, (64,))
    values[torch.arange(64), broken] += 8.0
    loss = nn.functional.cross_entropy(net(values, False), broken)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"faults: {loss.item():.3f}")
