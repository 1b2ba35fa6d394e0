"""Metric learning with TripletMarginLoss: the loss ends at 0, and most triplets give no gradient by then."""

import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Triplets(Dataset):
    def __init__(self, n=1200, people=20):
        g = torch.Generator().manual_seed(0)
        self.faces = torch.randn(people, 16, generator=g)
        self.g, self.n, self.people = g, n, people

    def __len__(self):
        return self.n

    def view(self, who):
        return self.faces[who] + 0.5 * torch.randn(16)

    def __getitem__(self, index):
        who = index % self.people
        other = (who + 1 + int(torch.randint(self.people - 1, ()))) % self.people
        return self.view(who), self.view(who), self.view(other)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--margin", type=float, default=0.5)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
    criterion = nn.TripletMarginLoss(margin=args.margin)
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    loader = DataLoader(Triplets(), batch_size=40, shuffle=True)
    for epoch in range(args.epochs):
        total = 0.0
        for anchor, positive, negative in loader:
            loss = criterion(net(anchor), net(positive), net(negative))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: triplet loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
