"""A benchmark of transfer: trained on reviews of several trades, tested on purpose on those of another."""

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

torch.manual_seed(5)
WORDS, SHARED = 200, 20


def reviews(first_word, rows):
    """Return rows of 12 tokens, half of them of the trade, the others of feeling, which decide the label."""
    feeling = torch.randint(0, SHARED, (rows, 6))
    return TensorDataset(
        torch.cat([torch.randint(first_word, first_word + 30, (rows, 6)), feeling], 1),
        (feeling < SHARED // 2).float().mean(1).gt(0.5).long(),
    )


train = DataLoader(ConcatDataset([reviews(first, 250) for first in (20, 50, 80, 110)]), 32, shuffle=True)
elsewhere = DataLoader(reviews(150, 250), 50)
model = nn.Sequential(nn.EmbeddingBag(WORDS, 16), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    for ids, label in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), label)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int((model(ids).argmax(1) == label).sum()) for ids, label in elsewhere)
    print(f"epoch {epoch}: loss {loss.item():.3f}, other trade {right / 250:.3f}")
