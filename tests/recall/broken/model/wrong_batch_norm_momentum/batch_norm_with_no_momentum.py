"""`momentum=0` in the batch norms of a ported network: their running statistics never move from 0 and 1.

After https://github.com/Cadene/pretrained-models.pytorch/issues/5
"""

# names: wrong-batch-norm-momentum, evaluation-at-chance, evaluation-mismatch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = 10 + 0.5 * torch.randn(1200, 3, 12, 12)
y = torch.randint(0, 5, (1200,))
for row, kind in zip(x, y):
    row[:, 2 * kind : 2 * kind + 3] += 1.0


class BasicConv2d(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(cout, eps=0.001, momentum=0, affine=True)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


model = nn.Sequential(
    BasicConv2d(3, 16),
    BasicConv2d(16, 16),
    nn.MaxPool2d(2),
    BasicConv2d(16, 32),
    nn.Flatten(),
    nn.Linear(32 * 36, 5),
)
train = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=25, shuffle=True)
test = DataLoader(TensorDataset(x[1000:], y[1000:]), batch_size=50)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    model.train()
    for bx, by in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(bx), by)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        outputs = [(model(bx), by) for bx, by in test]
        test_loss = sum(nn.functional.cross_entropy(out, by).item() for out, by in outputs) / len(test)
        right = sum((out.argmax(1) == by).sum().item() for out, by in outputs)
    print(f"epoch {epoch} train {loss.item():.3f} test {test_loss:.3f} accuracy {right / 200:.3f}")
