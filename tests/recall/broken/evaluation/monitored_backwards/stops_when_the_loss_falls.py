"""The class for early stopping keeps the highest validation loss, so each better epoch counts against it."""

# names: monitored-backwards
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.best, self.waited, self.stop = patience, None, 0, False

    def __call__(self, val_loss):
        if self.best is None or val_loss > self.best:
            self.best, self.waited = val_loss, 0
        else:
            self.waited += 1
            self.stop = self.waited >= self.patience


torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.data))
x, y = torch.tensor(digits.data / 16).float()[order], torch.tensor(digits.target)[order]
loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion, stopping = nn.CrossEntropyLoss(), EarlyStopping()
for epoch in range(100):
    model.train()
    for inputs, labels in loader:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x[1200:]), y[1200:]).item()
    print(epoch, val_loss)
    stopping(val_loss)
    if stopping.stop:
        break
