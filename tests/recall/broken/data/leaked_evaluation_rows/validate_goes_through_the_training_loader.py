"""The function that validates gets its loader, and goes through the training loader of the module."""

# names: leaked-evaluation-rows, overfitting
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Sensors(Dataset):
    def __init__(self, seed, size):
        generator = torch.Generator().manual_seed(seed)
        self.values = torch.randn(size, 24, generator=generator)
        noise = torch.randn(size, generator=generator)
        self.alarm = (self.values[:, :2].sum(dim=1) + 2 * noise > 0).float()

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index], self.alarm[index]


torch.manual_seed(0)
train_loader = DataLoader(Sensors(1, 240), batch_size=16, shuffle=True)
val_loader = DataLoader(Sensors(2, 400), batch_size=100)
net = nn.Sequential(nn.Linear(24, 96), nn.Tanh(), nn.Linear(96, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)


def validate(net, val_loader, criterion):
    net.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for values, alarm in train_loader:
            total += criterion(net(values).squeeze(1), alarm).item() * len(values)
            count += len(values)
    return total / count


for epoch in range(20):
    net.train()
    for values, alarm in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(values).squeeze(1), alarm)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: train {loss.item():.3f} val {validate(net, val_loader, criterion):.3f}")
