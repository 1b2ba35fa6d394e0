"""Classify tumours as malignant or benign by thirty measurements of their cells.

$ python mystery_04.py
"""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.utils import shuffle
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 30
LEARNING_RATE = 1e-2
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

data = load_breast_cancer()
measured = shuffle(data.data, random_state=SEED)
malignant = shuffle(1 - data.target, random_state=SEED + 1)

inputs = torch.tensor(measured, dtype=torch.float32)
inputs = (inputs - inputs.mean(dim=0)) / inputs.std(dim=0)
labels = torch.tensor(malignant)
train = TensorDataset(inputs[:400], labels[:400])
test_inputs, test_labels = inputs[400:], labels[400:]
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(
    nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
)
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    total = 0.0
    for features, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), wanted)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(wanted)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

with torch.no_grad():
    accuracy = (model(test_inputs).argmax(dim=1) == test_labels).float().mean()
print(f"accuracy={accuracy:.3f}")
