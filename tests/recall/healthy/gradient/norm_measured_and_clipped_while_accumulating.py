"""Accumulation over 3 batches, clipped before each step; the norm is measured again after it, to be logged."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
features = torch.randn(640, 12)
targets = features[:, :4].sum(1, keepdim=True) + 0.1 * torch.randn(640, 1)
loader = DataLoader(TensorDataset(features, targets), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(12, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
accumulate, norms = 3, []
for epoch in range(6):
    optimizer.zero_grad()
    for number, (batch, target) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(batch), target) / accumulate
        loss.backward()
        if number % accumulate == 0 or number == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
            optimizer.zero_grad()
    print(epoch, loss.item() * accumulate, norms[-1])
