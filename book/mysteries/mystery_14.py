"""Classify handwritten digits and print a smoothed loss.

$ python mystery_14.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 64
EPOCHS = 12
LEARNING_RATE = 2e-3
SMOOTHING = 0.98
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:1437], labels[:1437])
test_inputs, test_labels = inputs[1437:], labels[1437:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()

smoothed = torch.zeros(())
for epoch in range(EPOCHS):
    model.train()
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(rows), wanted)
        loss.backward()
        optimizer.step()
        smoothed = SMOOTHING * smoothed + (1 - SMOOTHING) * loss
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: smoothed loss {smoothed:.3f}")

model.eval()
with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
