"""Heartbeats are simulated each time they are read, in training and in validation."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(8)
LENGTH, KINDS = 60, 5


class Heartbeats(Dataset):
    def __init__(self, rows=800):
        made = torch.Generator().manual_seed(1)
        self.kinds = torch.randint(KINDS, (rows,), generator=made)
        self.shapes = torch.randn(KINDS, 1, LENGTH, generator=made).cumsum(-1) / 4

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, row):
        signal = (0.5 + torch.rand(())) * self.shapes[self.kinds[row]]
        return signal + 0.2 * torch.randn(1, LENGTH), self.kinds[row]


def main():
    train_set, val_set = random_split(Heartbeats(), [600, 200])
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
