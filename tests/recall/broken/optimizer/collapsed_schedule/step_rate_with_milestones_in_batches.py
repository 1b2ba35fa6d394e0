"""MultiStepLR counts batches, its milestones were meant as epochs: the rate is a billionth from batch 60 on."""

# names: collapsed-schedule
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 2 * torch.randn(4, 16)
labels = torch.randint(4, (1024,))
features = centres[labels] + torch.randn(1024, 16)

loader = DataLoader(TensorDataset(features, labels), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60], gamma=1e-4)
for epoch in range(10):
    for batch, target in loader:
        loss = nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, float(loss))
