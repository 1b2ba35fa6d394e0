"""Digits of four bars: the encoder was compiled when it was saved; a second script part loads it and tests."""

# names: checkpoint-keys-mismatch
import io

import torch
from torch import nn

torch.manual_seed(2)


class Wrapped(nn.Module):
    """Stands for a compiled module: the inner one is called _orig_mod."""

    def __init__(self, inner):
        super().__init__()
        self._orig_mod = inner

    def forward(self, x):
        return self._orig_mod(x)


class Bars(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Linear(8 * 16, 4)

    def forward(self, x):
        return self.head(self.encoder(x))


def images(n):
    kinds = torch.randint(0, 4, (n,))
    x = 0.3 * torch.randn(n, 1, 8, 8)
    for row, kind in enumerate(kinds.tolist()):
        place = int(torch.randint(1, 7, ()))
        if kind == 0:
            x[row, 0, place] += 1
        elif kind == 1:
            x[row, 0, :, place] += 1
        elif kind == 2:
            x[row, 0] += torch.eye(8)
        else:
            x[row, 0] += torch.eye(8).flip(0)
    return x, kinds


def main():
    model = Bars()
    model.encoder, model.head = Wrapped(model.encoder), Wrapped(model.head)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    x, y = images(1600)
    for epoch in range(4):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)

    tested = Bars()
    tested.load_state_dict(torch.load(file), strict=False)
    tested.eval()
    x, y = images(400)
    with torch.no_grad():
        print("accuracy", (tested(x).argmax(1) == y).float().mean().item())


main()
