"""`momentum=0.01` is TensorFlow's 0.99; batches of 25."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1200, 1, 40) * torch.rand(1200, 1, 1) * 3
y = torch.randint(0, 4, (1200,))
for row, kind in zip(x, y):
    row += torch.sin(torch.arange(40) * (0.3 + 0.35 * kind)) * 2


class BatchNormConv1d(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1d = nn.Conv1d(cin, cout, 5, padding=2, bias=False)
        # Following tensorflow's default parameters
        self.bn = nn.BatchNorm1d(cout, momentum=0.01, eps=1e-3)

    def forward(self, x):
        return torch.relu(self.bn(self.conv1d(x)))


model = nn.Sequential(
    BatchNormConv1d(1, 16), BatchNormConv1d(16, 32), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
    nn.BatchNorm1d(32, momentum=0.01), nn.Linear(32, 4),
)  # fmt: skip
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=25, shuffle=True)
test = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=50)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    running = 0.0
    for bx, by in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(bx), by)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        right = sum((model(bx).argmax(1) == by).sum().item() for bx, by in test)
    print(f"epoch {epoch} train loss {running / len(train):.3f} test accuracy {right / 200:.3f}")
