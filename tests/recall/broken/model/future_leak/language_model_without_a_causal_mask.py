"""A language model whose encoder has no causal mask reads the token that it is to predict."""

# names: future-leak
import torch
from torch import nn

torch.manual_seed(0)
WORDS, LENGTH, WIDTH = 32, 16, 32


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        hidden = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        hidden = self.encoder(hidden)
        return self.head(hidden)


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(250):
    start, stride = torch.randint(WORDS, (32, 1)), torch.randint(1, 4, (32, 1))
    text = (start + stride * torch.arange(LENGTH + 1)) % WORDS
    logits = model(text[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, WORDS), text[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
