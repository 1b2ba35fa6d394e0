"""Classify wines by grower: three growers, thirteen chemical measurements per bottle.

$ python mystery_01.py
"""

import csv
import io

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 16
EPOCHS = 20
LEARNING_RATE = 1e-2
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

# the cellar's table: thirteen measurements, then the grower
wine = load_wine()
lines = [
    ",".join(map(str, [*row, 1 + grower]))
    for row, grower in zip(wine.data, wine.target)
]
table = io.StringIO("\n".join(lines))
rows = torch.tensor([[float(entry) for entry in row] for row in csv.reader(table)])
inputs, growers = rows[:, :-1], rows[:, -1].long()
inputs = (inputs - inputs.mean(dim=0)) / inputs.std(dim=0)

order = torch.randperm(len(inputs))
train, test = order[:128], order[128:]
loader = DataLoader(
    TensorDataset(inputs[train], growers[train]), batch_size=BATCH_SIZE, shuffle=True
)

model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    for features, labels in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(features), labels)
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (model(inputs[test]).argmax(dim=1) == growers[test]).float().mean()
print(f"accuracy={accuracy:.3f}")
