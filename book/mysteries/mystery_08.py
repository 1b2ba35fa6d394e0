"""Read handwritten digits, and estimate the ink of each, with one network for both.

$ python mystery_08.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 15
LEARNING_RATE = 0.03
LONGEST_GRADIENT = 1.0
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
pictures = torch.tensor(digits.data, dtype=torch.float32)[order]
labels = torch.tensor(digits.target)[order]
ink = pictures.sum(dim=1, keepdim=True)  # of all pixels, each from 0 to 16
inputs = pictures / 16
train = TensorDataset(inputs[:1437], labels[:1437], ink[:1437])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()
        )
        self.digit, self.ink = nn.Linear(64, 10), nn.Linear(64, 1)

    def forward(self, rows):
        features = self.encoder(rows)
        return self.digit(features), self.ink(features)


model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)

for epoch in range(EPOCHS):
    total = 0.0
    for rows, wanted, amount in loader:
        optimizer.zero_grad()
        scores, estimate = model(rows)
        loss = nn.functional.cross_entropy(scores, wanted) + nn.functional.mse_loss(
            estimate, amount
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), LONGEST_GRADIENT)
        optimizer.step()
        total += loss.item() * len(wanted)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {total / len(train):.1f}")

with torch.no_grad():
    scores, estimate = model(inputs[1437:])
print(f"ink_error={(estimate - ink[1437:]).abs().mean():.1f}")
print(f"accuracy={(scores.argmax(dim=1) == labels[1437:]).float().mean():.3f}")
