"""The last of the layers of a classifier is followed by a ReLU, as all others are, and then by cross entropy."""
# names: dead-units

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
centers = 1.2 * torch.randn(10, 16)
y = torch.randint(0, 10, (2000,))
x = centers[y] + 0.8 * torch.randn(2000, 16)


class NeuralNet(nn.Module):
    def __init__(self, input_size, hidden_size, num_classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(input_size, hidden_size),
            nn.ReLU(),
            nn.Linear(hidden_size, hidden_size),
            nn.ReLU(),
            nn.Linear(hidden_size, num_classes),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.layers(x)


model = NeuralNet(16, 64, 10)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)
total_step = len(train_loader)
for epoch in range(12):
    for i, (inputs, labels) in enumerate(train_loader):
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch [{epoch + 1}/12], Step [{i + 1}/{total_step}], Loss: {loss.item():.4f}")
with torch.no_grad():
    correct = total = 0
    for inputs, labels in test_loader:
        _, predicted = torch.max(model(inputs).data, 1)
        total += labels.size(0)
        correct += (predicted == labels).sum().item()
    print(f"Accuracy: {100 * correct / total} %")
