"""A language model on blocks of 32 tokens from one text, 4 at a time; the last batch of an epoch is smaller."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
VOCAB, BLOCK, ACCUMULATE = 40, 32, 3
follows, text = torch.randperm(VOCAB), [0]
while len(text) < 150 * (BLOCK + 1):
    text.append(int(follows[text[-1]] if torch.rand(()) < 0.85 else torch.randint(VOCAB, ())))
blocks = torch.tensor(text).view(-1, BLOCK + 1)  # 150: 37 batches of 4, and one of 2
loader = DataLoader(blocks, batch_size=4, shuffle=True)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 32)
        self.layers = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, VOCAB)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens))[0])


model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    for number, batch in enumerate(loader, 1):
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        (loss / ACCUMULATE).backward()
        if number % ACCUMULATE == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
