"""The test rows were sorted by an id and their labels were not: the validation loss only rises."""
# names: evaluation-at-chance

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)


def table(n):
    ids = rng.permutation(n)
    x = rng.normal(size=(n, 12)).astype("float32")
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("int64")
    return ids, x, y


_, x_train, y_train = table(1500)
ids, x_test, y_test = table(600)
x_test = x_test[np.argsort(ids)]

train_loader = DataLoader(
    TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)), batch_size=50, shuffle=True
)
test_loader = DataLoader(TensorDataset(torch.from_numpy(x_test), torch.from_numpy(y_test)), batch_size=100)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for x, y in test_loader:
            output = model(x)
            val_loss += criterion(output, y).item() * len(x)
            correct += (output.argmax(1) == y).sum().item()
    print(f"epoch {epoch} train {loss.item():.3f} val {val_loss / 600:.3f} acc {correct / 600:.3f}")
