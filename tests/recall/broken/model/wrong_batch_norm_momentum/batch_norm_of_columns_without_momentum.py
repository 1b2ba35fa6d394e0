"""A batch norm in front scales the raw columns of a table; its `momentum=0.0` was meant to switch momentum off.

After https://github.com/pytorch/pytorch/issues/15298
"""

# names: wrong-batch-norm-momentum, evaluation-at-chance, evaluation-mismatch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
age = 45 + 12 * torch.randn(1500)
income = 52_000 + 9_000 * torch.randn(1500)
hours = 38 + 5 * torch.randn(1500)
table = torch.stack([age, income, hours], 1)
buys = ((age - 45) / 12 + (income - 52_000) / 9_000 > 0).long()
train = DataLoader(TensorDataset(table[:1200], buys[:1200]), batch_size=40, shuffle=True)
test = DataLoader(TensorDataset(table[1200:], buys[1200:]), batch_size=100)
model = nn.Sequential(
    nn.BatchNorm1d(3, momentum=0.0),
    nn.Linear(3, 32),
    nn.ReLU(),
    nn.BatchNorm1d(32, momentum=0.0),
    nn.Linear(32, 2),
)
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    test_loss, right = 0.0, 0
    with torch.no_grad():
        for x, y in test:
            out = model(x)
            test_loss += criterion(out, y).item() / len(test)
            right += (out.argmax(1) == y).sum().item()
    print(f"epoch {epoch} train {loss.item():.3f} test {test_loss:.3f} accuracy {right / 300:.3f}")
