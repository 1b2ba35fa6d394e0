"""A backbone is unfrozen after three epochs and added to the optimizer."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
        self.classifier = nn.Linear(16, 3)

    def forward(self, x):
        return self.classifier(self.backbone(x))


x = torch.randn(1500, 20)
y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] * x[:, 3] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)


def freeze(module, frozen=True):
    for p in module.parameters():
        p.requires_grad = not frozen


model = Model()
freeze(model.backbone)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    if epoch == 3:
        freeze(model.backbone, False)
        optimizer.add_param_group({"params": model.backbone.parameters(), "lr": 1e-3})
    total = correct = 0
    for xb, yb in loader:
        optimizer.zero_grad()
        out = model(xb)
        loss = criterion(out, yb)
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == yb).sum().item()
        total += len(yb)
    print(epoch, loss.item(), correct / total)
