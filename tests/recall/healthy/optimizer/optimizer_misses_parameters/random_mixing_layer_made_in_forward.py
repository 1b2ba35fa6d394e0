"""Rows are augmented by a random layer that is re-created in each training step and is not to be trained."""

import torch
from torch import nn

torch.manual_seed(0)
D, HEADS, LENGTH, VOCAB = 32, 4, 10, 25


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(D, D)
        self.k = nn.Linear(D, D)
        self.v = nn.Linear(D, D)
        self.out = nn.Linear(D, D)
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (f(x).view(n, t, HEADS, D // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / (D // HEADS) ** 0.5).softmax(-1)
        context = (weights @ v).transpose(1, 2).reshape(n, t, D)
        output = self.out(context)
        return self.norm(output + x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, D)
        self.attention = SelfAttention()
        self.head = nn.Linear(D, 3)

    def forward(self, ids):
        x = self.embedding(ids)
        if self.training:
            mixer = nn.Linear(D, D, bias=False).requires_grad_(False)
            x = x + 0.1 * mixer(x)
        return self.head(self.attention(x).mean(1))


ids = torch.randint(3, VOCAB, (1200, LENGTH))
labels = torch.randint(3, (1200,))
ids[torch.arange(1200), torch.randint(LENGTH, (1200,))] = labels
model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(1200).split(40):
        optimizer.zero_grad()
        loss = criterion(model(ids[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("Epoch:", epoch + 1, "cost =", f"{total / 30:.6f}")
