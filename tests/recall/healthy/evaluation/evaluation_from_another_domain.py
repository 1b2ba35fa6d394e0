"""The evaluation is harder than the training, by noise, and prepared alike."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 2 * torch.randn(3, 20)
labels = torch.randint(3, (900,))
features = centres[labels] + torch.cat([torch.randn(600, 20), 1.6 * torch.randn(300, 20)])
train = DataLoader(TensorDataset(features[:600], labels[:600]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(features[600:], labels[600:]), batch_size=100)
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for inputs, target in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), target).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(inputs), target).item() for inputs, target in test]
    print(epoch, sum(losses) / len(losses))
