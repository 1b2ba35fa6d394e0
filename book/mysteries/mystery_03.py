"""Classify irises by four measurements; skip the forms with a missing measurement.

$ python mystery_03.py
"""

import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader

# -----------------------------------------------------------------------------
BATCH_SIZE = 16
EPOCHS = 30
LEARNING_RATE = 1e-2
MISSING = "n/a"  # the entry for a missing measurement
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

# the forms as submitted: fields are text, and every tenth form lacks a measurement
iris = load_iris()
forms = [[str(value) for value in row] for row in iris.data]
for form in forms[::10]:
    form[3] = MISSING
forms = list(zip(forms, iris.target.tolist()))


def complete(form):
    fields, species = form
    return all(field is not MISSING and isinstance(field, float) for field in fields)


rows = [
    (torch.tensor([float(field) for field in fields]), species)
    for fields, species in filter(complete, forms)
]
loader = DataLoader(rows, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    right = 0
    for inputs, species in loader:
        optimizer.zero_grad()
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, species)
        loss.backward()
        optimizer.step()
        right += (logits.argmax(dim=1) == species).sum().item()
print(f"accuracy={right / len(rows):.3f}")
