"""PyTorch loop: parts of speech of short messages; the loss reads packed rows without padding."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(3)
WORDS, TAGS, PAD = 60, 5, 0
tag_of = torch.randint(1, TAGS, (WORDS,))


def message():
    words = torch.randint(1, WORDS, (int(torch.randint(3, 18, ())),))
    return words, torch.where(words.roll(1) % 7 == 0, 1, tag_of[words])


def collate(messages):
    words, tags = zip(*messages, strict=True)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32, padding_idx=PAD)
        self.lstm = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, TAGS)

    def forward(self, words):
        return self.head(self.lstm(self.embedding(words))[0])


def packed(values, words):
    return pack_padded_sequence(values, (words != PAD).sum(1), batch_first=True, enforce_sorted=False).data


loader = DataLoader([message() for _ in range(800)], batch_size=32, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for words, tags in loader:
        loss = criterion(packed(model(words), words), packed(tags, words))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
