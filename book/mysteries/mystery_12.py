"""Read digits from a poor scanner, with noisy copies, and keep the best epoch.

$ python mystery_12.py
"""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
PICTURES = 200  # to learn from; the others arrive later
COPIES = 5
NOISE = 0.25
HIDDEN = 512
EPOCHS = 40
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

digits = load_digits()
order = torch.randperm(len(digits.target))
scans = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
scans += 0.3 * torch.randn(scans.shape)
labels = torch.tensor(digits.target)[order]

# augmentation: a fifth of the resulting rows is for validation
inputs = scans[:PICTURES].repeat(COPIES, 1)
inputs += NOISE * torch.randn(inputs.shape)
targets = labels[:PICTURES].repeat(COPIES)
train, validation = torch.randperm(len(targets)).split([800, 200])
loader = DataLoader(
    TensorDataset(inputs[train], targets[train]), batch_size=32, shuffle=True
)

model = nn.Sequential(
    nn.Linear(64, HIDDEN), nn.ReLU(), nn.Dropout(0.5), nn.Linear(HIDDEN, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()


def evaluated(rows, wanted):
    """Return the loss and the accuracy on these rows."""
    model.eval()
    with torch.no_grad():
        scores = model(rows)
        return loss_fn(scores, wanted).item(), (
            scores.argmax(dim=1) == wanted
        ).float().mean().item()


lowest, best = float("inf"), None
for epoch in range(EPOCHS):
    model.train()
    for rows, wanted in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(rows), wanted)
        loss.backward()
        optimizer.step()
    validation_loss, accuracy = evaluated(inputs[validation], targets[validation])
    if validation_loss < lowest:
        lowest, best = validation_loss, copy.deepcopy(model.state_dict())
    if epoch % 10 == 9:
        print(
            f"epoch {epoch + 1}: validation loss {validation_loss:.3f}, "
            f"accuracy {accuracy:.3f}"
        )

model.load_state_dict(best)
print(f"validation={evaluated(inputs[validation], targets[validation])[1]:.3f}")
print(f"later={evaluated(scans[PICTURES:], labels[PICTURES:])[1]:.3f}")
