"""A translator in a class of its own; padded batches of four, short and long, and `loss / self.accum`."""

# names: uneven-accumulation
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(1)
PAD, VOCAB = 0, 30


def pair():
    size = int(torch.randint(1, 4, ())) if torch.rand(()) < 0.5 else int(torch.randint(15, 25, ()))
    source = torch.randint(1, VOCAB, (size,))
    return source, (source + 6) % (VOCAB - 1) + 1


def collate(pairs):
    sources, targets = zip(*pairs, strict=True)
    return pad_sequence(sources, batch_first=True), pad_sequence(targets, batch_first=True, padding_value=PAD)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 32, padding_idx=PAD)
        self.encoder = nn.LSTM(32, 32, batch_first=True, bidirectional=True)
        self.output = nn.Linear(64, VOCAB)

    def forward(self, source):
        return self.output(self.encoder(self.embedding(source))[0])


class Trainer:
    def __init__(self, model, pairs, accum=6):
        self.model, self.accum = model, accum
        pairs = sorted(pairs, key=lambda one: len(one[0]))  # rows of about the same length, to save padding
        self.batches = [collate(pairs[at : at + 4]) for at in range(0, len(pairs), 4)]
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def fit(self, epochs):
        for epoch in range(epochs):
            losses = []
            for index, (source, target) in enumerate(DataLoader(self.batches, batch_size=None, shuffle=True)):
                logits = self.model(source)
                loss = self.criterion(logits.transpose(1, 2), target) / self.accum
                loss.backward()
                losses.append(loss.item() * self.accum)
                if (index + 1) % self.accum == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            print(f"epoch {epoch}: {sum(losses) / len(losses):.3f}")


Trainer(Tagger(), [pair() for _ in range(480)]).fit(4)
