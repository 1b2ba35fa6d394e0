"""The output projection of an attention block and its norm are re-created in each forward, and never trained.

After https://github.com/graykode/nlp-tutorial/issues/29
"""

# names: optimizer-misses-parameters
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

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (f(x).view(n, t, HEADS, D // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = (q @ k.transpose(-1, -2) / (D // HEADS) ** 0.5).softmax(-1)
        context = (weights @ v).transpose(1, 2).reshape(n, t, D)
        output = nn.Linear(D, D)(context)  # broken: a new layer at every call
        return nn.LayerNorm(D)(output + x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, D)
        self.attention = SelfAttention()
        self.head = nn.Linear(D, 3)

    def forward(self, ids):
        return self.head(self.attention(self.embedding(ids)).mean(1))


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
