"""Classify handwritten digits; each feature is standardised over the batch.

$ python mystery_07.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 6
LEARNING_RATE = 2e-3
TRAINING = 1473  # pictures; the rest are for testing
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:TRAINING], labels[:TRAINING])
test_inputs, test_labels = inputs[TRAINING:], labels[TRAINING:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)


class Standardise(nn.Module):
    def forward(self, features):
        return (features - features.mean(dim=0)) / (features.std(dim=0) + 1e-5)


model = nn.Sequential(nn.Linear(64, 64), Standardise(), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
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

with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
