"""One fraud in seventy, no weights, accuracy 98.6% from the first epoch: nothing is ever called a fraud."""

# names: constant-predictions, class-imbalance
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(4)
n = 3500
y = (torch.rand(n) < 1 / 70).long()
x = torch.randn(n, 16)
x[y == 1, :4] += 0.6
train_set, val_set = random_split(TensorDataset(x, y), [2800, 700])


class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))

    def forward(self, x):
        return self.layers(x)


def accuracy(model, loader):
    model.eval()
    right = count = 0
    with torch.no_grad():
        for a, b in loader:
            right += (model(a).argmax(dim=1) == b).sum().item()
            count += len(b)
    return right / count


model = FraudNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
train_loader, val_loader = DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 100)
for epoch in range(8):
    model.train()
    for a, b in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(f"Epoch {epoch + 1}: accuracy {accuracy(model, val_loader):.2%}")
