"""Captchas: letters from a table that begins at 0, targets in one row, blank left at its default."""

# names: targets-out-of-reach
import string

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
letters = string.ascii_lowercase[:8]
to_id = {c: i for i, c in enumerate(letters)}
glyph = torch.randn(8, 10, 4)
words = ["".join(letters[i] for i in torch.randint(0, 8, (int(n),))) for n in torch.randint(3, 6, (300,))]


def picture(w):
    return F.pad(torch.cat([glyph[to_id[c]] for c in w], 1), (0, 4 * (5 - len(w)))) + 0.1 * torch.randn(10, 20)


class Captcha(torch.utils.data.Dataset):
    def __len__(self):
        return 300

    def __getitem__(self, i):
        return (picture(words[i]), torch.tensor([to_id[c] for c in words[i]]))


def collate(rows):
    x, y = zip(*rows)
    return (torch.stack(x), torch.cat(y), torch.tensor([len(t) for t in y]))


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.r = nn.LSTM(10, 32, bidirectional=True)
        self.f = nn.Linear(64, 9)

    def forward(self, x):
        return F.log_softmax(self.f(self.r(x.permute(2, 0, 1))[0]), 2)


net = CRNN()
opt = torch.optim.Adam(net.parameters(), 0.005)
for epoch in range(6):
    for x, y, n in torch.utils.data.DataLoader(Captcha(), 20, shuffle=True, collate_fn=collate):
        lp = net(x)
        loss = F.ctc_loss(lp, y, torch.full((len(n),), 20), n)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
