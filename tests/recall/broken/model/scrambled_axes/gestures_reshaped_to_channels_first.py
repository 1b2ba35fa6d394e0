"""PyTorch loop: gestures of six sensors, reshaped instead of transposed for a 1-D convolution."""

# names: scrambled-axes
import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
rng = np.random.default_rng(1)
kinds = rng.integers(0, 4, 1600)
gestures = rng.normal(0, 1, (1600, 40, 6))
for row, kind in enumerate(kinds):
    gestures[row, :, kind + 1] = 0.9 * gestures[row, :, kind] + 0.4 * gestures[row, :, kind + 1]

signals = torch.tensor(gestures, dtype=torch.float32).reshape(1600, 6, 40)
labels = torch.tensor(kinds)
net = nn.Sequential(
    nn.Conv1d(6, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 4)
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(12):
    order = torch.randperm(1200)
    for part in order.split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(signals[part]), labels[part])
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    right = (net(signals[1200:]).argmax(1) == labels[1200:]).float().mean()
print(f"accuracy on new gestures {right:.2f}")
