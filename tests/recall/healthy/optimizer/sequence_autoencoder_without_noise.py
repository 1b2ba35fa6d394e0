"""A plain autoencoder of sequences with teacher forcing: encoder and decoder get the same words."""

import torch
import torch.nn as nn

torch.manual_seed(3)
VOCAB = 12


class AutoEncoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, 16)
        self.reader = nn.LSTM(16, width, batch_first=True)
        self.writer = nn.LSTM(16, width, batch_first=True)
        self.vocab = nn.Linear(width, VOCAB)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        _, memory = self.reader(embedded)
        written, _ = self.writer(embedded, memory)
        return self.vocab(written)


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for i in range(250):
    words = torch.randint(1, VOCAB, (64, 7))
    fed = torch.cat([torch.zeros(64, 1, dtype=torch.long), words[:, :-1]], dim=1)
    logits = model(fed)
    loss = criterion(logits.transpose(1, 2), words)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
