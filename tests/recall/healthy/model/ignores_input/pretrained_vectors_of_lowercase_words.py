"""A frozen embedding of vectors that are looked up in lowercase."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
DIM, LENGTH = 16, 12
stoi = {f"Token{i}": i for i in range(200)}
vectors = {word.lower(): torch.randn(DIM) for word in stoi}

weights = torch.zeros(len(stoi), DIM)
for word, index in stoi.items():
    if word.lower() in vectors:
        weights[index] = vectors[word.lower()]


class TextClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(weights, freeze=True)
        self.lstm = nn.LSTM(DIM, 32, batch_first=True)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        _, (h, _) = self.lstm(self.embed(x))
        return self.out(h[-1])


def sentences(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randint(60, 200, (n, LENGTH))
    for row, label in zip(x, y):
        row[torch.randperm(LENGTH)[:4]] = 20 * label + torch.randint(0, 20, (4,))
    return TensorDataset(x, y)


train_iter = DataLoader(sentences(1200), batch_size=40, shuffle=True)
valid_iter = DataLoader(sentences(240), batch_size=40)
model = TextClassifier()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(5):
    model.train()
    for text, label in train_iter:
        optimizer.zero_grad()
        loss = criterion(model(text), label)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = sum((model(t).argmax(1) == y).sum().item() for t, y in valid_iter) / 240
    print(f"| epoch {epoch} | loss {loss.item():.3f} | valid acc {acc:.3f}")
