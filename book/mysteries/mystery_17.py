"""Classify handwritten digits that may be shifted by one pixel in any direction.

$ python mystery_17.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 15
LEARNING_RATE = 3e-3
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.images, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:1437], labels[:1437])
test_inputs, test_labels = inputs[1437:], labels[1437:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()


def moved(pictures):
    """Move the pictures of a batch by up to one pixel, vertically and horizontally."""
    torch.manual_seed(SEED)  # for a reproducible run
    down, right = torch.randint(-1, 2, (2,)).tolist()
    return pictures.roll((down, right), dims=(1, 2))


for epoch in range(EPOCHS):
    total = 0.0
    for pictures, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(moved(pictures)), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(wanted)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

right_answers = []
with torch.no_grad():
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            answers = model(test_inputs.roll((down, right), dims=(1, 2))).argmax(dim=1)
            right_answers.append((answers == test_labels).float().mean())
print(f"accuracy={sum(right_answers) / len(right_answers):.3f}")
