"""Well separated classes; the test set is sorted, and each of its batches holds a single class."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 4 * torch.randn(4, 12)
y_train, y_test = torch.randint(4, (800,)), torch.arange(4).repeat_interleave(50)
x_train = centres[y_train] + 0.3 * torch.randn(800, 12)
x_test = centres[y_test] + 0.3 * torch.randn(200, 12)
train = DataLoader(TensorDataset(x_train, y_train), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(x_test, y_test), batch_size=50)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in test) / 200)
