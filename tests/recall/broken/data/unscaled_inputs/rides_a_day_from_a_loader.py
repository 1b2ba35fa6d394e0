"""The rides of a city's bicycles are predicted in full, with Adam's usual learning rate."""

# names: unscaled-inputs
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
rows = 1200
hour = torch.rand(rows) * 24
temperature = 12 + 9 * torch.randn(rows)
holiday = (torch.rand(rows) < 0.1).float()
rides = 4200 + 2600 * torch.sin(hour / 24 * 6.283) + 110 * temperature - 1500 * holiday + 200 * torch.randn(rows)
inputs = torch.stack([hour, temperature, holiday], dim=1)
inputs = (inputs - inputs.mean(0)) / inputs.std(0)

loader = DataLoader(TensorDataset(inputs[:1000], rides[:1000]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(6):
    total = 0.0
    for features, target in loader:
        loss = nn.functional.mse_loss(model(features).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.1f}")

model.eval()
with torch.no_grad():
    error = (model(inputs[1000:]).squeeze(1) - rides[1000:]).abs().mean()
print(f"mean absolute error: {error:.0f} rides")
