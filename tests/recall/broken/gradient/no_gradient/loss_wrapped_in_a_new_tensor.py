"""The loss is collected as numbers and wrapped in a new tensor with requires_grad=True to make backward run."""

# names: no-gradient, unchanged-parameters, unreached-parameters
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 32), nn.ReLU())
        self.kind = nn.Linear(32, 3)
        self.size = nn.Linear(32, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.kind(h), self.size(h).squeeze(1)


def compute_loss(outputs, targets):
    kind, size = outputs
    parts = {
        "kind": nn.functional.cross_entropy(kind, targets[0]).item(),
        "size": nn.functional.mse_loss(size, targets[1]).item(),
    }
    return torch.tensor(sum(parts.values()), requires_grad=True)


torch.manual_seed(0)
x = torch.randn(900, 12)
data = TensorDataset(x, x[:, :3].argmax(1), x[:, 3] - x[:, 4])
model = MultiTask()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    total = 0
    for features, kind, size in DataLoader(data, batch_size=30, shuffle=True):
        loss = compute_loss(model(features), (kind, size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("epoch", epoch, "loss", total / 30)
