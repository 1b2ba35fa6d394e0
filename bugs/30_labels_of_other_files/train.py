"""Train a small network to read digits: a file for each scan, and a file of labels.

$ python bugs/30_labels_of_other_files/train.py
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

# -----------------------------------------------------------------------------
SCANS = 600
BATCH_SIZE = 32
EPOCHS = 60
LEARNING_RATE = 5e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

# data: the scanner numbers its files, and a clerk has typed the digits in that order
scanned = tempfile.TemporaryDirectory()
folder = Path(scanned.name)
digits = load_digits()
for number, picture in enumerate(digits.images[:SCANS]):
    np.save(folder / f"scan_{number}.npy", picture.astype("uint8"))
np.savetxt(folder / "labels.txt", digits.target[:SCANS], fmt="%d")


class Scans(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("scan_*.npy"))
        self.labels = np.loadtxt(folder / "labels.txt", dtype=int)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, row):
        pixels = np.load(self.files[row]).astype("float32") / 16
        return torch.from_numpy(pixels), self.labels[row]


train, validation = random_split(Scans(folder), [0.8, 0.2])
train_loader = DataLoader(train, BATCH_SIZE, shuffle=True)
validation_loader = DataLoader(validation, 4 * BATCH_SIZE)

# model: two linear layers, which return logits
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
criterion = nn.CrossEntropyLoss()


def evaluate():
    """Return the mean loss and the accuracy on the validation scans."""
    model.eval()
    losses, right = 0.0, 0
    with torch.no_grad():
        for images, labels in validation_loader:
            logits = model(images)
            losses += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(dim=1) == labels).sum().item()
    model.train()
    return losses / len(validation), right / len(validation)


for epoch in range(1, EPOCHS + 1):
    total = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 20 == 0:
        eval_loss, eval_accuracy = evaluate()
        print(
            f"epoch {epoch}: training loss {total / len(train_loader):.3f}, "
            f"validation loss {eval_loss:.3f}, accuracy {eval_accuracy:.3f}"
        )

print(f"train_loss={total / len(train_loader):.3f}")
print(f"eval_accuracy={evaluate()[1]:.3f}")
