"""Does a text score above average? Each word has a score, and their order means nothing to the sum."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCAB, LENGTH = 60, 14
scores = torch.randn(VOCAB)
words = torch.randint(0, VOCAB, (2000, LENGTH))
total = scores[words].sum(1) + 5 * torch.randn(2000)
label = (total > total.median()).long()


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)).mean(dim=1))


model = Scorer()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(words[:1600], label[:1600]), batch_size=32, shuffle=True)
for epoch in range(8):
    model.train()
    for tokens, wanted in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens), wanted)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(words[1600:]).argmax(1) == label[1600:]).float().mean().item()
    print(f"epoch {epoch}: test accuracy {right:.3f}")
