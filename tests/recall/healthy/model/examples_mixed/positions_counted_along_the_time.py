"""Positional encodings along the axis of time."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=500):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        pe = pe.transpose(0, 1)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class WhichComesFirst(Dataset):
    """Is there a 1 before the 2?"""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randint(3, 20, (n, 10), generator=g)
        self.y = torch.zeros(n, dtype=torch.long)
        for i in range(n):
            a, b = torch.randperm(10, generator=g)[:2].tolist()
            self.x[i, a], self.x[i, b] = 1, 2
            self.y[i] = int(a < b)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Model(nn.Module):
    def __init__(self, d_model=32):
        super().__init__()
        self.embed = nn.Embedding(20, d_model)
        self.pe = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(d_model, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.pe(self.embed(tokens))).mean(1))


def train():
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    train_loader = DataLoader(WhichComesFirst(2000, 0), batch_size=50, shuffle=True)
    test_loader = DataLoader(WhichComesFirst(400, 1), batch_size=50)
    for epoch in range(8):
        model.train()
        for tokens, labels in train_loader:
            loss = loss_fn(model(tokens), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = sum((model(t).argmax(-1) == y).sum().item() for t, y in test_loader) / 400
        print(f"epoch {epoch:2d} loss {loss.item():.4f} acc {acc:.3f}")


train()
