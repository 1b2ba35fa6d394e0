"""A series forecast by a small TCN: windows unshuffled, the last part held out, targets standardised."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
np.random.seed(0)
t = np.arange(1400)
series = 20 + 0.01 * t + 4 * np.sin(t / 12) + 1.5 * np.sin(t / 3.5) + 0.3 * np.random.randn(1400)
mean, std = series[:1100].mean(), series[:1100].std()
scaled = torch.tensor((series - mean) / std, dtype=torch.float32)


class Windows(Dataset):
    def __init__(self, values, lookback=32, horizon=4):
        self.values, self.lookback, self.horizon = values, lookback, horizon

    def __len__(self):
        return len(self.values) - self.lookback - self.horizon + 1

    def __getitem__(self, i):
        cut = i + self.lookback
        return self.values[i:cut][None], self.values[cut : cut + self.horizon]


class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv1d(1 if k == 0 else 16, 16, 3, dilation=2**k) for k in range(3)])
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        for k, conv in enumerate(self.convs):
            x = torch.relu(conv(nn.functional.pad(x, (2 * 2**k, 0))))
        return self.out(x[:, :, -1])


train_loader = DataLoader(Windows(scaled[:1100]), batch_size=32)
test_loader = DataLoader(Windows(scaled[1100:]), batch_size=64)
model = TCN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(x), y)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        mae = torch.cat([(model(x) - y).abs() for x, y in test_loader]).mean().item()
    print(f"epoch {epoch} train {loss.item():.3f} test mae {mae * std:.3f}")
