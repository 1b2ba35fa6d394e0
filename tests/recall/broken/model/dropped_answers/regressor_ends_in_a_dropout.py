"""A Sequential of blocks, each a Linear, an activation and a Dropout, and the last block is like the others."""

# names: dropped-answers
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)
x = torch.randn(1600, 12)
y = torch.stack([x[:, 0] + x[:, 1] * x[:, 2], x[:, 3].sin() * 2], dim=1) + 3


def block(inputs, outputs, activation=None):
    layers = [nn.Linear(inputs, outputs), *([activation] if activation else []), nn.Dropout(0.2)]
    return nn.Sequential(*layers)


net = nn.Sequential(block(12, 64, nn.SiLU()), block(64, 64, nn.SiLU()), block(64, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.MSELoss()
train_loader = DataLoader(TensorDataset(x[:1280], y[:1280]), batch_size=64, shuffle=True)
for epoch in range(8):
    net.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        validation = criterion(net(x[1280:]), y[1280:])
    print(f"epoch {epoch} train {loss.item():.3f} validation {validation.item():.3f}")
