"""Classify handwritten digits in batches of 128, eight parts of 16 to save memory.

$ diagnose run mystery_08.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 16
PARTS = 8  # per batch, between two steps
EPOCHS = 12
LEARNING_RATE = 0.3
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:1408], labels[:1408])
test_inputs, test_labels = inputs[1408:], labels[1408:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total = 0.0
    for part, (pictures, wanted) in enumerate(loader, start=1):
        optimizer.zero_grad()
        loss = loss_fn(model(pictures), wanted)
        (loss / PARTS).backward()
        if part % PARTS == 0:
            optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}")

with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
