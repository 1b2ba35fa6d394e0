"""Pre-trained on five classes, then the head is swapped for one of three; the optimizer is still the first one."""

# names: optimizer-misses-parameters
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.features(x))


def run(model, optimizer, x, y, epochs):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    for _ in range(epochs):
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(0)
x = torch.randn(640, 20)
model = Net(5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
print("pretraining", run(model, optimizer, x, x[:, :5].argmax(1), 5))
model.head = nn.Linear(32, 3)
print("fine-tuning", run(model, optimizer, x, x[:, 5:8].argmax(1), 5))
