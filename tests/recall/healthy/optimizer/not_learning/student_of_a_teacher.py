"""A student is distilled from a larger teacher."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1600, 16)
y = (x[:, 0] + x[:, 1] > 0).long() + 2 * (x[:, 2] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


def mlp(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 4))


teacher, student = mlp(128), mlp(16)
optimizer = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(6):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.cross_entropy(teacher(xb), yb).backward()
        optimizer.step()
teacher.eval()
print("teacher", (teacher(x).argmax(1) == y).float().mean().item())

T = 3.0
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(6):
    for xb, yb in loader:
        student_logits = student(xb)
        with torch.no_grad():
            teacher_logits = teacher(xb)
            soft = F.softmax(teacher_logits / T, dim=1)
        loss = F.kl_div(F.log_softmax(student_logits / T, dim=1), soft, reduction="batchmean") * T * T
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), "student", (student(x).argmax(1) == y).float().mean().item())
