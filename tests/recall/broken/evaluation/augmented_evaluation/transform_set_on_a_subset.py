"""Heartbeats are rolled, masked and made noisy in validation too: the subset's new transform is never read."""

# names: augmented-evaluation
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(8)
LENGTH, KINDS = 60, 5


def plain(signal):
    return signal


def distorted(signal):
    signal = torch.roll(signal, int(torch.randint(-4, 5, ())), -1).clone()
    start = int(torch.randint(LENGTH - 10, ()))
    signal[:, start : start + 10] = 0.0
    return signal + 0.4 * torch.randn_like(signal)


class Heartbeats(Dataset):
    def __init__(self, transform, rows=800):
        made = torch.Generator().manual_seed(1)
        self.kinds = torch.randint(KINDS, (rows,), generator=made)
        shapes = torch.randn(KINDS, 1, LENGTH, generator=made).cumsum(-1) / 4
        height = 0.5 + torch.rand(rows, 1, 1, generator=made)
        self.signals = height * shapes[self.kinds] + 0.2 * torch.randn(rows, 1, LENGTH, generator=made)
        self.transform = transform

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, row):
        return self.transform(self.signals[row]), self.kinds[row]


def main():
    train_set, val_set = random_split(Heartbeats(distorted), [600, 200])
    val_set.transform = plain
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    model = nn.Sequential(nn.Conv1d(1, 12, 7), nn.ReLU(), nn.MaxPool1d(3), nn.Flatten(), nn.Linear(216, KINDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        model.train()
        for signals, kinds in train_loader:
            loss = nn.functional.cross_entropy(model(signals), kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(signals).argmax(1) == kinds).sum().item() for signals, kinds in val_loader)
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, validation accuracy {right / len(val_set):.3f}")


if __name__ == "__main__":
    main()
