"""A regression of rates from 0 to 1, whose Dataset casts each target to long."""
# names: single-class-labels

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Rates(Dataset):
    def __init__(self, n=1200):
        torch.manual_seed(n)
        self.x = torch.randn(n, 7)
        self.y = torch.sigmoid(self.x[:, 0] - 2 * self.x[:, 1] + self.x[:, 2] * self.x[:, 3])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"features": self.x[i], "target": self.y[i].long()}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 50), nn.ReLU(), nn.Linear(50, 50), nn.ReLU())
        self.head = nn.Linear(50, 1)

    def forward(self, features):
        return self.head(self.body(features)).squeeze(-1)


def train(model, loader, epochs=10, lr=1e-3):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        losses = []
        for batch in loader:
            optimizer.zero_grad()
            prediction = model(batch["features"])
            loss = criterion(prediction, batch["target"].float())
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: {sum(losses) / len(losses):.5f}")


if __name__ == "__main__":
    train(MLP(), DataLoader(Rates(), batch_size=40, shuffle=True))
