"""ReduceLROnPlateau is stepped with the accuracy in its default mode "min": each better epoch is a bad one.

After https://github.com/md-mohaiminul/ViS4mer/issues/4
"""

# names: collapsed-schedule
import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x = torch.randn(2400, 16)
y = (x[:, 0] * x[:, 1] > 0).long() * 2 + (x[:, 2] * x[:, 3] > 0).long()
train_set, val_set = random_split(TensorDataset(x, y), [2000, 400])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(16, 64), nn.Linear(64, 64), nn.Linear(64, 4)

    def forward(self, x):
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(x)))))


model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
criterion = nn.CrossEntropyLoss()


def run(loader, train):
    model.train(train)
    total, correct, seen = 0.0, 0, 0
    for xb, yb in loader:
        with torch.set_grad_enabled(train):
            out = model(xb)
            loss = criterion(out, yb)
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(xb)
        correct += (out.argmax(1) == yb).sum().item()
        seen += len(xb)
    return total / seen, correct / seen


for epoch in range(20):
    train_loss, train_acc = run(train_loader, True)
    val_loss, val_acc = run(val_loader, False)
    scheduler.step(val_acc)
    print(f"{epoch:2d} {train_loss:.3f} {train_acc:.3f} | {val_loss:.3f} {val_acc:.3f}")
