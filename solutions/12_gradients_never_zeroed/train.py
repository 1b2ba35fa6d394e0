"""Train a small network to read handwritten digits, in a training loop written by hand.

$ python solutions/12_gradients_never_zeroed/train.py
"""

import os

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
MEAN, DEVIATION = 4.88, 6.02  # of all pixels, which run from 0 (white) to 16 (black)
HIDDEN = 128  # units in each of the two hidden layers
BATCH_SIZE = 32
EPOCHS = 20
LEARNING_RATE = 0.02
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

# data: 1797 images of 8 x 8 pixels, and the digit that each one shows
digits = load_digits()
images = torch.tensor((digits.data - MEAN) / DEVIATION, dtype=torch.float32)
labels = torch.tensor(digits.target)
train_rows, eval_rows = train_test_split(
    range(len(labels)), test_size=0.25, stratify=labels, random_state=SEED
)
train_loader = DataLoader(
    TensorDataset(images[train_rows], labels[train_rows]), BATCH_SIZE, shuffle=True
)

# model: two hidden layers, and one logit for each digit
model = nn.Sequential(
    nn.Linear(64, HIDDEN),
    nn.ReLU(),
    nn.Linear(HIDDEN, HIDDEN),
    nn.ReLU(),
    nn.Linear(HIDDEN, 10),
)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)


def evaluate():
    model.eval()
    with torch.no_grad():
        answers = model(images[eval_rows]).argmax(dim=1)
    return (answers == labels[eval_rows]).float().mean().item()


for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    train_loss = total / len(train_loader)
    print(f"epoch {epoch:2}  loss {train_loss:7.3f}  accuracy {evaluate():.3f}")

print(f"train_loss={train_loss:.3f}")
print(f"eval_accuracy={evaluate():.3f}")
