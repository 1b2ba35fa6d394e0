"""Predict a limit for the progression of diabetes that nine in ten patients stay below.

$ python mystery_06.py
"""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 60
LEARNING_RATE = 1e-2
QUANTILE = 0.9
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

data = load_diabetes(scaled=False)
order = torch.randperm(len(data.target))
inputs = torch.tensor(data.data, dtype=torch.float32)[order]
inputs = (inputs - inputs[:352].mean(dim=0)) / inputs[:352].std(dim=0)
progress = torch.tensor(data.target, dtype=torch.float32)[order].unsqueeze(1)
progress = (progress - progress[:352].mean()) / progress[:352].std()

train = TensorDataset(inputs[:352], progress[:352])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)


def quantile_loss(limit, observed):
    """Weight errors by QUANTILE on one side of the limit, by the rest on the other."""
    error = limit - observed
    return torch.maximum(QUANTILE * error, (QUANTILE - 1) * error).mean()


model = nn.Linear(10, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    total = 0.0
    for measurements, observed in loader:
        optimizer.zero_grad()
        loss = quantile_loss(model(measurements), observed)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(observed)
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

with torch.no_grad():
    limits = model(inputs[352:])
below = (progress[352:] <= limits).float().mean()
print(f"below_limit={below:.3f}")
