"""A masked language model reads both ways by design."""

import torch
from torch import nn

torch.manual_seed(0)
WORDS, LENGTH, WIDTH, MASK = 32, 16, 32, 32


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.encoder(self.words(tokens) + self.places.weight))


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(400):
    start = torch.randint(WORDS, (32, 1))
    text = (start + torch.arange(LENGTH)) % WORDS
    hidden = torch.rand(text.shape) < 0.2
    labels = torch.where(hidden, text, -100)
    logits = model(torch.where(hidden, MASK, text))
    loss = nn.functional.cross_entropy(logits.reshape(-1, WORDS), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
