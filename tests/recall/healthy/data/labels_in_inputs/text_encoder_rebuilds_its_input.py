"""An autoencoder reads a whole command and rebuilds it, padding left out, through a narrow code."""

import torch
from torch import nn

torch.manual_seed(4)
WORDS, LENGTH, PAD = 30, 10, 0


def commands(n):
    first = torch.randint(1, WORDS, (n, 1))
    rows = (first + torch.arange(LENGTH) * 3) % (WORDS - 1) + 1
    keep = torch.arange(LENGTH) < torch.randint(4, LENGTH + 1, (n, 1))
    return torch.where(keep, rows, PAD)


class Rebuild(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.encode, self.decode = nn.GRU(width, width, batch_first=True), nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, WORDS)

    def forward(self, rows):
        _, code = self.encode(self.embed(rows))
        return self.head(self.decode(code[0][:, None].expand(-1, LENGTH, -1))[0])


model = Rebuild()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
data = commands(1024)
for epoch in range(8):
    for rows in data[torch.randperm(len(data))].split(64):
        loss = loss_fn(model(rows).transpose(1, 2), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
