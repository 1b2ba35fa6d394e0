"""ignore_index=0 is carried over from a text model into a task where 0 is the first class."""

# names: unused-classes, constant-predictions
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = torch.randn(4, 14) * 1.2
labels = torch.randint(4, (1600,))
data = centres[labels] + torch.randn(1600, 14)
train_loader = DataLoader(TensorDataset(data[:1200], labels[:1200]), batch_size=40, shuffle=True)
test_loader = DataLoader(TensorDataset(data[1200:], labels[1200:]), batch_size=100)


def build():
    return nn.Sequential(nn.Linear(14, 40), nn.ReLU(), nn.Linear(40, 4))


def train(model, loader, criterion, optimizer):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.item()


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in loader:
            correct += (model(inputs).argmax(1) == targets).sum().item()
    return correct / len(loader.dataset)


model = build()
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(10):
    print(epoch, train(model, train_loader, criterion, optimizer), test(model, test_loader))
