"""Two heads on one body, their losses weighed and added, small batches added up, and the step in a function.

$ python tests/healthy/scripts/script_two_tasks.py
"""

import torch
import torch.nn.functional as F
from torch import nn

FEATURES, CLASSES = 12, 3
BATCH_SIZE, TOGETHER = 16, 2
EPOCHS = 10


def rows(count, seed):
    """Return features (count, 12), classes (count,) and sizes (count,)."""
    features = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1), features[:, 4] * features[:, 5]


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.kind, self.size = nn.Linear(64, CLASSES), nn.Linear(64, 1)

    def forward(self, features):
        hidden = self.body(features)
        return self.kind(hidden), self.size(hidden)


def build():
    torch.manual_seed(0)
    model = TwoHeads()
    return model, rows(1024, seed=1), None, torch.optim.AdamW(model.parameters(), lr=3e-3)


def compute(model, features, kinds, sizes):
    scores, guessed = model(features)
    return 0.5 * F.cross_entropy(scores, kinds) + 0.5 * F.smooth_l1_loss(guessed.squeeze(1), sizes)


def learn(model, optimizer, parts):
    optimizer.zero_grad()
    for part in parts:
        (compute(model, *part) / TOGETHER).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def train(model, data, loss_fn, optimizer):
    held_out = rows(512, seed=2)
    with torch.no_grad():
        before = compute(model, *held_out).item()
    for _ in range(EPOCHS):
        for places in torch.randperm(len(data[0])).split(BATCH_SIZE * TOGETHER):
            learn(model, optimizer, (tuple(column[few] for column in data) for few in places.split(BATCH_SIZE)))
    with torch.no_grad():
        after = compute(model, *held_out).item()
    return {"loss_before": before, "loss_after": after}


if __name__ == "__main__":
    print(train(*build()))
