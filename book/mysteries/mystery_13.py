"""Find the best of six learning rates for a classifier of handwritten digits.

$ python mystery_13.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
RATES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
BATCH_SIZE = 32
EPOCHS = 4
HIDDEN = 64
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
inputs = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
labels = torch.tensor(digits.target)[order]
train = TensorDataset(inputs[:800], labels[:800])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)

model = nn.Sequential(nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))
loss_fn = nn.CrossEntropyLoss()


def fit(rate):
    """Train with one rate and return the accuracy on the held-out pictures."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(EPOCHS):
        for pictures, wanted in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(pictures), wanted)
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return (model(inputs[800:]).argmax(dim=1) == labels[800:]).float().mean().item()


scores = {}
for rate in RATES:
    scores[rate] = fit(rate)
    print(f"rate {rate:5}: accuracy {scores[rate]:.3f}")
best = max(scores, key=scores.get)
print(f"best_rate={best}")
