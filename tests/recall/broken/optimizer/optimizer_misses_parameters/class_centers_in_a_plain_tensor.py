"""The only weights after a frozen body are a plain tensor with requires_grad: model.parameters() lacks it."""

# names: optimizer-misses-parameters
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
CLASSES, DIM = 6, 16
means = torch.randn(CLASSES, 20)
y = torch.randint(0, CLASSES, (1200,))
x = means[y] + 0.7 * torch.randn(1200, 20)


class ArcHead(nn.Module):
    def __init__(self, dim, classes, scale=8.0):
        super().__init__()
        self.scale = scale
        self.centers = torch.randn(classes, dim, requires_grad=True)

    def forward(self, features):
        return self.scale * F.linear(F.normalize(features), F.normalize(self.centers))


class FaceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 32), nn.PReLU(), nn.Linear(32, DIM))
        self.head = ArcHead(DIM, CLASSES)

    def forward(self, x):
        return self.head(self.backbone(x))


model = FaceNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)
for epoch in range(6):
    hits = 0
    for xb, yb in loader:
        logits = model(xb)
        loss = F.cross_entropy(logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (logits.argmax(1) == yb).sum().item()
    print(f"epoch {epoch} loss {loss.item():.4f} acc {hits / 1200:.3f}")
