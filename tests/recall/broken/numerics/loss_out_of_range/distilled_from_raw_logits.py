"""Distillation gives kl_div the student's logits, and multiplies the result by the square of the temperature."""

# names: loss-out-of-range
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

X = torch.randn(800, 20)
Y = (X @ torch.randn(20, 6)).argmax(1)
dl = DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True)
teacher = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 6))
o = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(8):
    for x, y in dl:
        o.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        o.step()
for p in teacher.parameters():
    p.requires_grad_(False)
student = nn.Linear(20, 6)
T = 3.0
opt = torch.optim.SGD(student.parameters(), lr=0.05)
for ep in range(8):
    s = 0
    for x, y in dl:
        t = teacher(x)
        z = student(x)
        loss = F.kl_div(z / T, F.softmax(t / T, dim=1), reduction="batchmean") * T * T
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    print("epoch", ep, "loss", s / len(dl), "acc", (student(X).argmax(1) == Y).float().mean().item())
