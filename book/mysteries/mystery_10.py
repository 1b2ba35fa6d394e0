"""Forecast tomorrow's temperature from the last two weeks, smoothed and as measured.

$ python mystery_10.py
"""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 64
EPOCHS = 30
LEARNING_RATE = 3e-3
DAYS = 14  # seen by the network
SMOOTHING = 5  # days
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)
random = np.random.default_rng(SEED)

# six years of a weather station: the seasons, and weather that lasts a few days
today = np.arange(6 * 365)
weather = np.zeros(len(today))
for day in today[1:]:
    weather[day] = 0.8 * weather[day - 1] + random.normal(scale=2.0)
temperature = 10 - 9 * np.cos(2 * np.pi * today / 365) + weather


def smoothed(series):
    """Return the moving average of a series."""
    return np.convolve(series, np.ones(SMOOTHING) / SMOOTHING, mode="same")


def windows(series, last_days):
    """Return the two weeks up to each day, as measured and smoothed."""
    rows = np.stack([series, smoothed(series)])
    parts = [rows[:, day - DAYS + 1 : day + 1].ravel() for day in last_days]
    return torch.tensor(np.array(parts), dtype=torch.float32) / 10 - 1


history, live = temperature[: 5 * 365], range(5 * 365, 6 * 365 - 1)
days = range(DAYS - 1, len(history) - 1)
inputs = windows(history, days)
targets = torch.tensor(history[DAYS:], dtype=torch.float32)[:, None] / 10 - 1
train = TensorDataset(inputs[:1400], targets[:1400])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Linear(2 * DAYS, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(rows), wanted)
        loss.backward()
        optimizer.step()

with torch.no_grad():
    validation = (model(inputs[1400:]) - targets[1400:]).abs().mean() * 10
    # the sixth year, evening by evening, with only what is known by then
    evenings = torch.cat([windows(temperature[: day + 1], [day]) for day in live])
    arrived = torch.tensor(temperature[1:][live], dtype=torch.float32)[:, None] / 10 - 1
    live_error = (model(evenings) - arrived).abs().mean() * 10
print(f"as yesterday: {np.abs(np.diff(temperature)).mean():.2f} degrees off")
print(f"validation_error={validation:.2f}")
print(f"live_error={live_error:.2f}")
