"""An LSTM predicts the value that follows its window."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
np.random.seed(0)
t = np.arange(1500)
power = (np.sin(t / 12) + 0.5 * np.sin(t / 3.7) + 0.4 * np.random.randn(1500)).astype("float32")
LOOKBACK = 24


class Windows(Dataset):
    def __init__(self, series):
        self.series = torch.from_numpy(series)

    def __len__(self):
        return len(self.series) - LOOKBACK

    def __getitem__(self, i):
        window = self.series[i : i + LOOKBACK]
        return window.unsqueeze(-1), self.series[i + LOOKBACK]


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 24, batch_first=True)
        self.linear = nn.Linear(24, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1]).squeeze(-1)


train_loader = DataLoader(Windows(power[:1200]), batch_size=32, shuffle=True)
test_loader = DataLoader(Windows(power[1200:]), batch_size=64)
model = LSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        errors = torch.cat([model(x) - y for x, y in test_loader])
    print(epoch, "test rmse", errors.pow(2).mean().sqrt().item())
