"""Predict from its readings whether a machine needs service, in half precision.

$ python solutions/11_half_precision_overflow/train.py
"""

import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
READINGS = 8  # standardised; two of them matter, and only together
WIDTH, INNER, BLOCKS = 32, 128, 3
SPREAD = 6.0  # of the blocks' weights, as large as after pre-training in bfloat16
BATCH_SIZE = 32
EPOCHS = 2
LEARNING_RATE = 3e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)


# data: made up; service is due if pressure and temperature are both high or both low
def machines(count):
    readings = torch.randn(count, READINGS)
    return TensorDataset(readings, (readings[:, 0] * readings[:, 1] > 0).long())


train = DataLoader(machines(4_000), batch_size=BATCH_SIZE, shuffle=True)
validation = DataLoader(machines(1_000), batch_size=8 * BATCH_SIZE)


# model: gated feed-forward blocks as in T5 1.1, each of which adds to what it is given
class GatedFeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.wi_0 = nn.Linear(WIDTH, INNER, bias=False)
        self.wi_1 = nn.Linear(WIDTH, INNER, bias=False)
        self.wo = nn.Linear(INNER, WIDTH, bias=False)
        for layer in (self.wi_0, self.wi_1, self.wo):  # instead of a checkpoint
            nn.init.normal_(layer.weight, std=SPREAD)

    def forward(self, states):
        normed = self.norm(states)
        gated = F.gelu(self.wi_0(normed)) * self.wi_1(normed)
        with torch.autocast("cpu", enabled=False):  # float16 ends at 65,504
            return states + self.wo(gated.float())


class ServiceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(READINGS, WIDTH)
        self.blocks = nn.Sequential(*[GatedFeedForward() for _ in range(BLOCKS)])
        self.norm = nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, readings):
        states = self.embed(readings).float()  # the residual sum is in full precision
        return self.head(self.norm(self.blocks(states)))


model = ServiceModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for readings, labels in train:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(readings), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

model.eval()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
    correct = [
        (model(readings).argmax(dim=-1) == labels).float()
        for readings, labels in validation
    ]
print(f"train_loss={total / len(train):.3f}")
print(f"eval_accuracy={torch.cat(correct).mean():.3f}")
