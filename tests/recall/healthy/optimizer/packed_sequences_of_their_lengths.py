"""A bidirectional LSTM over packed sequences, sorted by length within each batch."""

import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random.seed(0)
torch.manual_seed(0)


def tweets(n):
    rows = []
    for _ in range(n):
        words = [random.randrange(1, 50) for _ in range(random.randint(3, 20))]
        rows.append((torch.tensor(words), int(sum(w < 17 for w in words) > sum(w > 33 for w in words))))
    return rows


def collate(rows):
    rows = sorted(rows, key=lambda r: len(r[0]), reverse=True)
    return (
        pad_sequence([r[0] for r in rows], batch_first=True),
        torch.tensor([len(r[0]) for r in rows]),
        torch.tensor([r[1] for r in rows]),
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(48, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths, batch_first=True)
        _, (h, _) = self.lstm(packed)
        return self.fc(torch.cat([h[-2], h[-1]], 1))


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
loader, test = (
    DataLoader(tweets(800), 32, shuffle=True, collate_fn=collate),
    DataLoader(tweets(200), 50, collate_fn=collate),
)
for epoch in range(8):
    net.train()
    for x, lengths, y in loader:
        loss = nn.functional.cross_entropy(net(x, lengths), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        hits = sum((net(x, n).argmax(1) == y).sum().item() for x, n, y in test)
    print(f"epoch {epoch} test accuracy {hits / 200:.3f}")
