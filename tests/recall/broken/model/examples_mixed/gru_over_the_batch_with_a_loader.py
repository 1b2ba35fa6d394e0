"""A GRU classifier of sensor windows; the GRU takes time first, and nobody turned the axes."""

# names: examples-mixed
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class GRUNet(nn.Module):
    def __init__(self, n_features, hidden, n_classes, layers=1):
        super().__init__()
        self.gru = nn.GRU(n_features, hidden, layers)
        self.fc = nn.Linear(hidden, n_classes)

    def forward(self, x):
        h0 = torch.zeros(1, x.size(1), 32)
        out, _ = self.gru(x, h0)
        return self.fc(out[:, -1, :])


def train(model, loader, optimizer, epoch):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(42)
    windows = torch.randn(1600, 10, 4)
    activity = (windows[:, :, 0].sum(1) > 0).long() + (windows[:, :, 1].sum(1) > 0).long()
    loader = DataLoader(TensorDataset(windows, activity), batch_size=40, shuffle=True)
    model = GRUNet(4, 32, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        train(model, loader, optimizer, epoch)


if __name__ == "__main__":
    main()
