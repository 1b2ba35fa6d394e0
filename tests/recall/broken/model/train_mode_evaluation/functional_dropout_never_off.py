"""A table classifier with F.dropout in its forward; model.eval() does not reach a function."""
# names: train-mode-evaluation

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


class Classifier(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        x = F.dropout(F.relu(self.fc1(x)), 0.5)
        x = F.dropout(F.relu(self.fc2(x)), 0.5)
        return self.out(x)


x = torch.randn(1600, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
train = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)
model = Classifier(20, 64, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for xb, yb in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in test)
    print(f"epoch {epoch}: test accuracy {right / 400:.3f}")
