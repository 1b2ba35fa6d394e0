"""Semi-supervised: labels of -1 mean "unknown"; pseudo-labels come from the model itself, above a threshold."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centres = 1.2 * torch.randn(4, 16)
truth = torch.randint(4, (1200,))
x = centres[truth] + torch.randn(1200, 16)
labels = truth.clone()
labels[torch.rand(1200) < 0.85] = -1


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))

    def forward(self, x):
        return self.f(x)


model = Student()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(12):
    for a, b in DataLoader(TensorDataset(x, labels), batch_size=60, shuffle=True):
        known = b >= 0
        logits = model(a)
        loss = F.cross_entropy(logits, b, ignore_index=-1)
        with torch.no_grad():
            confidence, guess = model(a + 0.1 * torch.randn_like(a)).softmax(1).max(1)
        sure = (confidence > 0.9) & ~known
        if sure.any():
            loss = loss + 0.5 * F.cross_entropy(logits[sure], guess[sure])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(
        f"epoch {epoch} loss {loss.item():.3f} accuracy {(model(x).argmax(1) == truth).float().mean().item():.3f}"
    )
