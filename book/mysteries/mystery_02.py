"""Classify handwritten digits.

$ python mystery_02.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 8
LEARNING_RATE = 0.1
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = (
    torch.tensor(digits.data, dtype=torch.float32)[order] / 255
)  # grey values to 0 … 1
labels = torch.tensor(digits.target)[order]
train, test = (
    TensorDataset(inputs[:1437], labels[:1437]),
    TensorDataset(inputs[1437:], labels[1437:]),
)
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total = 0.0
    for pictures, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(pictures), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(wanted)
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(test.tensors[0]).argmax(dim=1) == test.tensors[1]).float().mean()
print(f"accuracy={accuracy:.3f}")
