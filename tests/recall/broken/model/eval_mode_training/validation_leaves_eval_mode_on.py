"""evaluate() calls model.eval(), and train() is called only once, before the first epoch.

After https://github.com/hendrycks/ethics/issues/5
"""

# names: eval-mode-training
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(4, 16, 3, padding=1), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.4),
            nn.Conv1d(16, 16, 3, padding=1), nn.BatchNorm1d(16), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )  # fmt: skip
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        return self.out(self.body(x))


def make(n, noise):
    y = torch.randint(3, (n,))
    t = torch.arange(32) / 32
    x = torch.sin(2 * torch.pi * (y[:, None, None] + 2) * t + torch.rand(n, 4, 1) * 6) + noise * torch.randn(
        n, 4, 32
    )
    return TensorDataset(x, y)


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader = DataLoader(make(320, 2.0), batch_size=16, shuffle=True)
    test_loader = DataLoader(make(400, 2.0), batch_size=100)
    model = ConvNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(20):
        running = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        acc = evaluate(model, test_loader)
        print(f"epoch {epoch}: train loss {running / len(train_loader):.4f} test acc {acc:.3f}")
