"""The padding of the codes is 0, that of the stitches another id, which cross entropy ignores."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

torch.manual_seed(7)
LETTERS = "abcdefgh"
CODES = ["<none>", *"123", *LETTERS]  # "2b1a" is a pattern that is knitted as "bba"
STITCHES = ["<stop>", *LETTERS, "<go>", "<none>"]
STOP, GO, EMPTY = 0, STITCHES.index("<go>"), STITCHES.index("<none>")


def pattern():
    codes, stitches = [], [GO]
    for _ in range(int(torch.randint(1, 5, ()))):
        times, letter = int(torch.randint(1, 4, ())), LETTERS[int(torch.randint(8, ()))]
        codes += [CODES.index(str(times)), CODES.index(letter)]
        stitches += [STITCHES.index(letter)] * times
    return torch.tensor(codes), torch.tensor([*stitches, STOP])


class Knitter(nn.Module):
    def __init__(self):
        super().__init__()
        self.read, self.write = nn.Embedding(len(CODES), 48), nn.Embedding(len(STITCHES), 48)
        self.encoder, self.decoder = nn.GRU(48, 96), nn.GRU(48, 96)
        self.attention = nn.MultiheadAttention(96, 4)
        self.out = nn.Linear(192, len(STITCHES))

    def forward(self, codes, stitches):
        memory, last = self.encoder(self.read(codes))
        states, _ = self.decoder(self.write(stitches), last)
        found, _ = self.attention(states, memory, memory, key_padding_mask=(codes == 0).T)
        return self.out(torch.cat([states, found], -1))


patterns = [pattern() for _ in range(1600)]
model = Knitter()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(len(patterns)).split(32):
        codes = pad_sequence([patterns[i][0] for i in rows])  # steps first
        stitches = pad_sequence([patterns[i][1] for i in rows], padding_value=EMPTY)
        logits = model(codes, stitches[:-1])
        loss = F.cross_entropy(logits.reshape(-1, len(STITCHES)), stitches[1:].reshape(-1), ignore_index=EMPTY)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, round(total / 50, 4))
