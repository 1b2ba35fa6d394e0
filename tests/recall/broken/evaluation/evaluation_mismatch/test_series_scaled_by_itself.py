"""The later part of a rising series is scaled to 0..1 by itself, and the error looks small."""

# names: evaluation-mismatch
import numpy as np
import torch
from sklearn.preprocessing import MinMaxScaler
from torch import nn

torch.manual_seed(0)
t = np.arange(1200)
series = (0.02 * t + 3 * np.sin(t / 15) + np.random.RandomState(0).randn(1200) * 0.2).reshape(-1, 1)
scaler = MinMaxScaler()
train = scaler.fit_transform(series[:900])
test_raw = series[900:]
test = scaler.fit_transform(test_raw)


def windows(data, k=24):
    rows = np.stack([data[i : i + k] for i in range(len(data) - k)])
    return torch.tensor(rows).float(), torch.tensor(data[k:]).float()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1])


(x, y), (x_test, y_test) = windows(train), windows(test)
net = Forecaster()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), nn.functional.mse_loss(net(x_test), y_test).item())
