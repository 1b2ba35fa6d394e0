"""Did the word come before the other one? Attention is written by hand, and the positions were forgotten."""
# names: missing-positions

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.size(-1))
        return torch.softmax(scores, dim=-1) @ self.v(x)


class OrderClassifier(nn.Module):
    def __init__(self, vocab, dim=40):
        super().__init__()
        self.token = nn.Embedding(vocab, dim)
        self.attention1, self.attention2 = SelfAttention(dim), SelfAttention(dim)
        self.norm = nn.LayerNorm(dim)
        self.classify = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, tokens):
        x = self.token(tokens)
        x = self.norm(x + self.attention1(x))
        x = x + self.attention2(x)
        return self.classify(x.max(dim=1).values)


torch.manual_seed(1)
tokens = torch.randint(2, 20, (2400, 16))
rows = torch.arange(2400)
first, second = torch.rand(2400, 16).topk(2, dim=1).indices.sort(dim=1).values.T
swap = torch.rand(2400) < 0.5
tokens[rows, torch.where(swap, second, first)] = 0
tokens[rows, torch.where(swap, first, second)] = 1
loader = DataLoader(TensorDataset(tokens, swap.long()), batch_size=48, shuffle=True)
model = OrderClassifier(20)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(5):
    right = 0
    for batch, label in loader:
        optimizer.zero_grad()
        logits = model(batch)
        loss = criterion(logits, label)
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == label).sum().item()
    print(epoch, right / 2400)
