"""An untrained model is evaluated beside the trained one, for comparison."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(11)
features = torch.randn(1500, 16)
target = (features[:, 0] * features[:, 1] > 0).long()
train_set, test_set = random_split(TensorDataset(features, target), [1200, 300])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train():
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        for x, y in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")
    return model


def evaluate(model):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(test_set, batch_size=64):
            right += (model(x).argmax(1) == y).sum().item()
    print(f"test accuracy {right / len(test_set):.3f}")


evaluate(train())
evaluate(Classifier())
