"""The rare class is multiplied first and split afterwards: its copies stand on both sides."""

# names: leaked-evaluation-rows
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
healthy, ill = torch.randn(900, 30), torch.randn(60, 30) + 0.15
ill = ill.repeat(15, 1)
x = torch.cat([healthy, ill])
y = torch.cat([torch.zeros(900), torch.ones(900)]).long()
train_set, val_set = random_split(TensorDataset(x, y), [1440, 360])


def train_epoch(model, loader, optimizer):
    model.train()
    for a, b in loader:
        loss = nn.functional.cross_entropy(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(a).argmax(1) == b).sum().item() for a, b in loader) / len(loader.dataset)


model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    train_epoch(model, DataLoader(train_set, 32, shuffle=True), optimizer)
    print("epoch", epoch, "validation accuracy", evaluate(model, DataLoader(val_set, 60)))
fresh = torch.cat([torch.randn(500, 30), torch.randn(500, 30) + 0.15])
with torch.no_grad():
    print("on new patients", (model(fresh).argmax(1) == torch.arange(1000) // 500).float().mean().item())
