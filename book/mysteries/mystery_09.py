"""Classify handwritten digits; divide the learning rate by ten after each third.

$ python mystery_09.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 15
LEARNING_RATE = 3e-3
LOWERED_EVERY = 5
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

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
scheduler = torch.optim.lr_scheduler.StepLR(
    optimizer, step_size=LOWERED_EVERY, gamma=0.1
)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total = 0.0
    for pictures, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(pictures), wanted)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(wanted)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
