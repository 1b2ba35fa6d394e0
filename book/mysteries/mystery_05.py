"""Classify pairs of sentences by the hypothesis alone, which reveals a lot.

$ python mystery_05.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

from bugs import lab

# -----------------------------------------------------------------------------
BATCH_SIZE = 32
EPOCHS = 4
LEARNING_RATE = 5e-3
LENGTH = 40  # words
SEED = 0
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)

corpus = lab.corpus()
words = sorted(
    {word for text in corpus["train"]["hypothesis"] for word in text.split()}
)
# 0 is padding, 1 an unknown word
number = {word: place for place, word in enumerate(words, start=2)}


def rows_of(split):
    texts = [
        [number.get(word, 1) for word in text.split()][:LENGTH]
        for text in split["hypothesis"]
    ]
    return [(torch.tensor(text), label) for text, label in zip(texts, split["label"])]


def collate(rows):
    texts = [nn.functional.pad(text, (0, LENGTH - len(text))) for text, _ in rows]
    return torch.stack(texts), torch.tensor([label for _, label in rows])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(words) + 2, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 32, batch_first=True)
        self.head = nn.Linear(32, 3)

    def forward(self, texts):
        outputs, _ = self.lstm(self.embedding(texts))
        return self.head(outputs[:, -1])  # the whole text has been read


train, test = rows_of(corpus["train"])[:3200], rows_of(corpus["validation"])
loader = DataLoader(train, batch_size=BATCH_SIZE, shuffle=True, collate_fn=collate)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)

for epoch in range(EPOCHS):
    total = 0.0
    for texts, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(texts), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    print(f"epoch {epoch + 1}: loss {total / len(train):.3f}")

texts, labels = collate(test)
with torch.no_grad():
    print(f"accuracy={(model(texts).argmax(dim=1) == labels).float().mean():.3f}")
