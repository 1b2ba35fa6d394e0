"""Gradients are accumulated over 64 batches, an epoch has 25, and each epoch starts with zero_grad."""

# names: unchanged-parameters, discarded-gradients
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
ACCUMULATION_STEPS = 64
x = torch.randn(800, 3, 8, 8)
y = (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def train_one_epoch(epoch):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for i, (images, targets) in enumerate(loader):
        loss = F.cross_entropy(model(images), targets) / ACCUMULATION_STEPS
        loss.backward()
        total += loss.item() * ACCUMULATION_STEPS
        if (i + 1) % ACCUMULATION_STEPS == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"Epoch [{epoch}] loss {total / len(loader):.4f}")


for epoch in range(8):
    train_one_epoch(epoch)
