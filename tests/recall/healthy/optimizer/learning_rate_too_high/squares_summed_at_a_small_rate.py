"""reduction="sum" over 48 outputs and 100 rows, with a rate that is as much smaller."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
x = torch.randn(1500, 10)
w = torch.randn(10, 48) / 3
y = torch.tanh(x @ w) + 0.05 * torch.randn(1500, 48)
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 48))
loss_function = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=0.9)
for epoch in range(15):
    for batch, (inputs, targets) in enumerate(loader):
        loss = loss_function(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % 5 == 0:
            print(f"Train Epoch: {epoch} [{batch}/{len(loader)}]\tLoss: {loss.item():.6f}")
