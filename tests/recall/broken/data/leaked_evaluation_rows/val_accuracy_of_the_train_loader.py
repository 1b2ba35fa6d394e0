"""The validation accuracy is computed from the training loader."""

# names: leaked-evaluation-rows, overfitting
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(61)
x = torch.randn(700, 30)
y = (x[:, 0] + 1.5 * torch.randn(700) > 0).long()
train_dataset = TensorDataset(x[:200], y[:200])
val_dataset = TensorDataset(x[200:], y[200:])
train_loader = DataLoader(train_dataset, batch_size=20, shuffle=True)
val_loader = DataLoader(val_dataset, batch_size=50)
model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in loader:
            right += (model(inputs).argmax(1) == labels).sum().item()
    model.train()
    return right / len(loader.dataset)


for epoch in range(25):
    for inputs, labels in train_loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    val_accuracy = evaluate(model, train_loader)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, val accuracy {val_accuracy:.3f}")
