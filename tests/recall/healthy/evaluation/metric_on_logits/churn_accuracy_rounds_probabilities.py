"""A table of customers, BCEWithLogitsLoss, and a binary accuracy that rounds probabilities."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)


class ChurnClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(12, 64)
        self.layer_2 = nn.Linear(64, 64)
        self.layer_out = nn.Linear(64, 1)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.1)
        self.batchnorm1 = nn.BatchNorm1d(64)

    def forward(self, inputs):
        x = self.batchnorm1(self.relu(self.layer_1(inputs)))
        return self.layer_out(self.dropout(self.relu(self.layer_2(x))))


def binary_acc(y_pred, y_test):
    y_pred_tag = torch.round(torch.sigmoid(y_pred))
    correct_results_sum = (y_pred_tag == y_test).sum().float()
    return torch.round(correct_results_sum / y_test.shape[0] * 100)


def customers(n):
    x = torch.randn(n, 12)
    risk = x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3]
    return TensorDataset(x, (risk + 0.3 * torch.randn(n) > 0).float()[:, None])


train_loader = DataLoader(customers(1200), batch_size=64, shuffle=True)
model = ChurnClassifier()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
model.train()
for epoch in range(1, 13):
    epoch_loss, epoch_acc = 0, 0
    for x_batch, y_batch in train_loader:
        optimizer.zero_grad()
        y_pred = model(x_batch)
        loss = criterion(y_pred, y_batch)
        acc = binary_acc(y_pred, y_batch)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        epoch_acc += acc.item()
    print(f"{epoch:03}: loss {epoch_loss / len(train_loader):.5f} acc {epoch_acc / len(train_loader):.3f}")
