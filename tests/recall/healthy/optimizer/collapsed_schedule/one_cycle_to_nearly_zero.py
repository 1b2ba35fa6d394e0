"""OneCycleLR ends at a rate 250,000 times less than its peak, as its defaults do."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 2 * torch.randn(4, 16)
labels = torch.randint(4, (1024,))
features = centres[labels] + torch.randn(1024, 16)

loader = DataLoader(TensorDataset(features, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=12 * len(loader))
for epoch in range(12):
    for batch, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
