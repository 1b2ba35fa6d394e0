"""Predict which of four campaigns brought a visitor to a shop, from what they did.

$ python solutions/15_fading_gradient/train.py
"""

import os

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

# -----------------------------------------------------------------------------
LENGTH = 40  # events in a visit
CAMPAIGNS = 4  # their links are the events 0 to 3, and one of them begins each visit
EVENTS = 12  # 4 to 11 are what visitors do: view a page, search, fill the basket
WIDTH = 64
VISITS = 8_000
BATCH_SIZE = 32
EPOCHS = 2
LEARNING_RATE = 3e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)


# data: made up, so that the first event determines the campaign
def visits(count):
    campaigns = torch.randint(CAMPAIGNS, (count, 1))
    events = torch.randint(CAMPAIGNS, EVENTS, (count, LENGTH - 1))
    return TensorDataset(torch.cat([campaigns, events], dim=1), campaigns.squeeze(1))


train = DataLoader(visits(VISITS), batch_size=BATCH_SIZE, shuffle=True)
validation = DataLoader(visits(1_000), batch_size=8 * BATCH_SIZE)


# model: reads the events one by one, and answers after the last
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(EVENTS, WIDTH)
        self.memory = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        # gates: i, f, g, o; an open forget gate (f) keeps the state, and its gradient
        nn.init.constant_(self.memory.bias_hh_l0[WIDTH : 2 * WIDTH], 3.0)
        self.head = nn.Linear(WIDTH, CAMPAIGNS)

    def forward(self, events):
        states, _ = self.memory(self.embedding(events))
        return self.head(states[:, -1])


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for events, campaigns in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(events), campaigns)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

model.eval()
with torch.no_grad():
    correct = [
        (model(events).argmax(dim=-1) == campaigns).float()
        for events, campaigns in validation
    ]
print(f"train_loss={total / len(train):.3f}")
print(f"eval_accuracy={torch.cat(correct).mean():.3f}")
