"""The margin's output comes out detached; `loss.requires_grad = True` silences the error, and nothing is learned.

After https://github.com/ronghuaiyang/arcface-pytorch/issues/56
"""

# names: no-gradient, unchanged-parameters
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
people = 12
centres = torch.randn(people, 32)
label = torch.randint(people, (1200,))
data = centres[label] + 0.5 * torch.randn(1200, 32)


class ArcMargin(nn.Module):
    def __init__(self, features, classes, s=10.0, m=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, features) * 0.1)
        self.s, self.m = s, m

    def forward(self, x, target):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        one_hot = F.one_hot(target, cosine.shape[1])
        return (self.s * (cosine - self.m * one_hot)).data  # broken


backbone = nn.Sequential(nn.Linear(32, 64), nn.PReLU(), nn.Linear(64, 32))
metric = ArcMargin(32, people)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD([{"params": backbone.parameters()}, {"params": metric.parameters()}], lr=0.1)
for epoch in range(5):
    for x, y in DataLoader(TensorDataset(data, label), batch_size=32, shuffle=True):
        output = metric(backbone(x), y)
        loss = criterion(output, y)
        loss.requires_grad = True
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} acc {(output.argmax(1) == y).float().mean():.3f}")
