"""Classify handwritten digits line by line, as a recurrent network reads text.

$ diagnose run mystery_10.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 10
LEARNING_RATE = 5e-3
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
# inputs: (pictures, lines, columns)
inputs = torch.tensor(digits.images, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:1408], labels[:1408])
test_inputs, test_labels = inputs[1408:], labels[1408:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = nn.GRU(8, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, pictures):
        states, _ = self.lines(pictures)
        return self.head(states[:, -1])


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    total = 0.0
    for pictures, wanted in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(wanted)
    if epoch % 3 == 0:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
