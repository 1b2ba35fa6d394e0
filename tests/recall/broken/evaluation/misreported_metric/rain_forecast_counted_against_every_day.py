"""Rain tomorrow from weather stations; column answers are compared with a flat vector of labels in each batch."""

# names: misreported-metric
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
stations = torch.randn(1500, 9)
rain = ((stations[:, 0] - 0.8 * stations[:, 4] + 0.4 * torch.randn(1500)) > 0.3).long()
train = DataLoader(TensorDataset(stations[:1200], rain[:1200]), batch_size=50, shuffle=True)
valid = DataLoader(TensorDataset(stations[1200:], rain[1200:]), batch_size=100)

forecaster = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(forecaster.parameters(), lr=5e-3)
for epoch in range(8):
    forecaster.train()
    for weather, wet in train:
        loss = nn.functional.binary_cross_entropy_with_logits(forecaster(weather).squeeze(1), wet.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    forecaster.eval()
    right = 0
    with torch.no_grad():
        for weather, wet in valid:
            said = forecaster(weather).sigmoid().round().long()
            right += torch.eq(said, wet).sum().item()
    print(f"epoch {epoch}: {right / len(valid.dataset):.3f} of the days are right")
