"""Spam in short messages: a class token in front, in an encoder that reads both ways."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
ids = torch.randint(2, 40, (1500, 12))
spam = torch.rand(1500) < 0.5
ids[spam, torch.randint(0, 12, (int(spam.sum()),))] = torch.randint(40, 44, (int(spam.sum()),))
ids[~spam & (torch.rand(1500) < 0.5), 8:] = 0
ids = torch.cat([torch.ones(1500, 1, dtype=torch.long), ids], 1)


class SpamFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.place = nn.Embedding(44, 32, padding_idx=0), nn.Embedding(13, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(32, 2)

    def forward(self, ids, mask):
        x = self.words(ids) + self.place(torch.arange(ids.size(1)))
        return self.head(self.encoder(x, src_key_padding_mask=mask == 0)[:, 0])


model = SpamFilter()
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(6):
    for batch, mask, label in DataLoader(TensorDataset(ids, (ids != 0).long(), spam.long()), 50, shuffle=True):
        loss = nn.functional.cross_entropy(model(batch, mask), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))
