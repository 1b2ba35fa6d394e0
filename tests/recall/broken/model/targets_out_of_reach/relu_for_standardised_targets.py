"""Targets are standardised, and the last layer is a ReLU: half of them cannot be reached."""

# names: targets-out-of-reach
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
features = torch.randn(1024, 8)
targets = features[:, :1] - 2 * features[:, 1:2]
targets = (targets - targets.mean()) / targets.std()
loader = DataLoader(TensorDataset(features, targets), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1), nn.ReLU())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(20):
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), target)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
