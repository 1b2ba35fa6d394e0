"""The collate function sorts the sequences for packing and leaves the labels in their old order.

After https://github.com/fartashf/vsepp/pull/36
"""

# names: not-learning, labels-unrelated
import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)


def example():
    label = random.randrange(4)
    length = random.randint(4, 20)
    seq = torch.randn(length, 6)
    seq[:, label] += 1.0
    return seq, label


def pad_collate(batch):
    seqs = sorted((b[0] for b in batch), key=len, reverse=True)
    labels = torch.tensor([b[1] for b in batch])
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, labels


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 32, batch_first=True)
        self.out = nn.Linear(32, 4)

    def forward(self, x, lengths):
        _, h = self.gru(pack_padded_sequence(x, lengths, batch_first=True))
        return self.out(h[-1])


data = [example() for _ in range(960)]
loader = DataLoader(data, batch_size=32, shuffle=True, collate_fn=pad_collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for x, lengths, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
