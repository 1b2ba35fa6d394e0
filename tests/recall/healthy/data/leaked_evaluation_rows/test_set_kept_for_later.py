"""The test set is kept for later and not used; only the training loss is watched."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sensors(Dataset):
    def __init__(self, seed, size):
        generator = torch.Generator().manual_seed(seed)
        self.values = torch.randn(size, 24, generator=generator)
        noise = torch.randn(size, generator=generator)
        self.alarm = (self.values[:, :2].sum(dim=1) + 0.3 * noise > 0).float()

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index], self.alarm[index]


torch.manual_seed(0)
train_loader = DataLoader(Sensors(1, 1200), batch_size=16, shuffle=True)
test_loader = DataLoader(Sensors(2, 400), batch_size=100)
net = nn.Sequential(nn.Linear(24, 96), nn.Tanh(), nn.Linear(96, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)


for epoch in range(6):
    net.train()
    for values, alarm in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(values).squeeze(1), alarm)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        train_loss = sum(criterion(net(v).squeeze(1), a).item() for v, a in train_loader) / len(train_loader)
    print(f"epoch {epoch}: {train_loss:.3f}")
