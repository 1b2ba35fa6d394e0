"""A transformer is pre-trained in float32, cast to bfloat16 to save memory, and tuned with AdamW at 1e-5."""

# names: update-below-precision
import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab=40, dim=32, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, tags)

    def forward(self, tokens):
        return self.head(self.encoder(self.embedding(tokens)))


def batches(count, shift):
    for _ in range(count):
        tokens = torch.randint(40, (16, 12))
        yield tokens, (tokens + shift) % 4


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for tokens, tags in batches(60, 0):
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("pretrained", loss.item())

model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step, (tokens, tags) in enumerate(batches(200, 1)):
    loss = F.cross_entropy(model(tokens).float().flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
