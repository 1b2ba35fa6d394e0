"""The best model of a text matcher is kept as best_model = model; the test set meets the last epoch.

After https://github.com/zhangj111/astnn/issues/8
"""

# names: weights-kept-by-reference
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 256), nn.ReLU(), nn.Linear(256, 2))

    def forward(self, x):
        return self.layers(x)


def make(n):
    x = torch.randn(n, 20)
    y = (x[:, :3].sum(1) + 0.8 * torch.randn(n) > 0).long()
    return x, y


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    train, val, test = make(300), make(200), make(500)
    loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    best_acc, best_model = 0.0, model
    for epoch in range(25):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        acc = evaluate(model, *val)
        if acc > best_acc:
            best_acc = acc
            best_model = model
    model = best_model
    print(f"val {best_acc:.3f}, test {evaluate(model, *test):.3f}")


if __name__ == "__main__":
    main()
