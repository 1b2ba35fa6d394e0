"""Predict the progression of diabetes after one year from ten measurements.

$ diagnose run mystery_06.py
"""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 40
LEARNING_RATE = 1e-2
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

data = load_diabetes(scaled=False)
order = torch.randperm(len(data.target))
inputs = torch.tensor(data.data, dtype=torch.float32)[order]
inputs = (inputs - inputs.mean(dim=0)) / inputs.std(dim=0)
progress = torch.tensor(data.target, dtype=torch.float32)[order]
progress = (progress - progress.mean()) / progress.std()

train = TensorDataset(inputs[:352], progress[:352])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, measurements):
        return self.layers(measurements)


def squared_error(predicted, observed):
    return ((predicted - observed) ** 2).mean()


model = Predictor()
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    total = 0.0
    for measurements, observed in loader:
        optimizer.zero_grad()
        loss = squared_error(model(measurements), observed)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(observed)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

with torch.no_grad():
    predicted, observed = model(inputs[352:]).flatten(), progress[352:]
variance = (observed - observed.mean()).square().mean()
explained = 1 - (predicted - observed).square().mean() / variance
print(f"r2={explained:.3f}")
