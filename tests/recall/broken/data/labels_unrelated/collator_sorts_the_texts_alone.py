"""A collator puts the longest texts first, for packing, and leaves the labels where they were.

After https://github.com/fartashf/vsepp/pull/36
"""

# names: labels-unrelated
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Reviews(Dataset):
    def __init__(self, n):
        self.items = []
        for _ in range(n):
            label = int(torch.rand(1) < 0.5)
            length = int(torch.randint(4, 15, (1,)))
            base = torch.randint(1, 20, (length,))
            base[torch.rand(length) < 0.4] = 20 + label
            self.items.append((base, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate_fn(batch):
    seqs, labels = zip(*batch)
    seqs = sorted(seqs, key=len, reverse=True)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels).float()


class Clf(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(22, 16, padding_idx=0)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths, batch_first=True)
        _, (h, _) = self.rnn(packed)
        return self.fc(h[-1]).squeeze(1)


loader = DataLoader(Reviews(400), batch_size=25, shuffle=True, collate_fn=collate_fn)
model = Clf()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    hit = 0
    for x, n, y in loader:
        out = model(x, n)
        loss = nn.functional.binary_cross_entropy_with_logits(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit += ((out > 0).float() == y).sum().item()
    print(epoch, loss.item(), hit / 400)
