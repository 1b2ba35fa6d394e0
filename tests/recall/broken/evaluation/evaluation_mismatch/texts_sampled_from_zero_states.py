"""A model of symbols samples two texts at once, one symbol at a time, and starts from zeros each time."""

# names: evaluation-mismatch
import torch
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
symbols = "0123456789abc."
table = {symbol: place for place, symbol in enumerate(symbols)}
words = ["0a12b7c.", "93b10a.", "4c4c1b2a.", "7b70a9.", "58c3a6b."]
stream = torch.tensor([table[s] for k in torch.randint(0, 5, (4000,)) for s in words[k]])

parts = torch.nn.ModuleDict()
parts["embed"], parts["out"] = torch.nn.Embedding(14, 16), torch.nn.Linear(64, 14)
parts["rnn"] = torch.nn.LSTM(16, 64, num_layers=2)


class Reader(torch.nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, tokens):
        states, _ = self.parts["rnn"](self.parts["embed"](tokens))
        return self.parts["out"](states)


reader = Reader(parts)
optimizer = torch.optim.RMSprop(reader.parameters(), lr=3e-3)
for step in range(250):
    starts = torch.randint(0, len(stream) - 34, (24,))
    rows = torch.stack([stream[s : s + 33] for s in starts], dim=1)
    loss = F.cross_entropy(reader(rows[:-1]).flatten(0, 1), rows[1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

reader.eval()
token, text = torch.tensor([[table["0"], table["9"]]]), ["0", "9"]
with torch.no_grad():
    for _ in range(60):
        token = torch.distributions.Categorical(logits=reader(token)).sample()
        text = [before + symbols[one] for before, one in zip(text, token[0].tolist())]
print(text)
