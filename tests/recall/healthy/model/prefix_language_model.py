"""The first words of a text see each other; only what follows them is predicted, behind a causal mask."""

import torch
from torch import nn

torch.manual_seed(0)
V, T, PREFIX = 24, 14, 5


class PrefixLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(V, 32), nn.Embedding(T, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(32, V)

    def forward(self, ids):
        mask = torch.ones(T, T, dtype=torch.bool).triu(1)
        mask[:, :PREFIX] = False
        return self.head(self.body(self.words(ids) + self.places(torch.arange(T)), mask=mask))


model = PrefixLM()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(200):
    start, stride = torch.randint(V, (32, 1)), torch.randint(1, 4, (32, 1))
    text = (start + stride * torch.arange(T + 1)) % V
    labels = text[:, 1:].clone()
    labels[:, : PREFIX - 1] = -100
    loss = nn.functional.cross_entropy(model(text[:, :-1]).transpose(1, 2), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", round(loss.item(), 3))
