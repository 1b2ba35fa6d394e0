"""OneCycleLR over epochs * len(loader) steps, stepped once an epoch: the rate stays at a 25th."""

# names: learning-rate-too-low
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 20)
y = (x @ torch.randn(20, 5) + 0.5 * torch.randn(2000, 5)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
epochs = 8
optimizer = torch.optim.SGD(model.parameters(), lr=0.004, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(loader))
for epoch in range(epochs):
    running = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    print(epoch, running / len(loader), scheduler.get_last_lr())
