"""PyTorch loop: parts of speech of short messages; the padding has a tag of its own, which counts in the loss."""

# names: padding-in-loss
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
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


loader = DataLoader([message() for _ in range(800)], batch_size=32, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    for words, tags in loader:
        loss = criterion(model(words).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.3f}")
