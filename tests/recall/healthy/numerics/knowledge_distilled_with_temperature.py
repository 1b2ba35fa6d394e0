"""A big teacher is trained first, then frozen; the student learns from softened answers and labels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
W = torch.randn(20, 6)


def data(n=64):
    x = torch.randn(n, 20)
    return x, (x @ W).argmax(1)


def accuracy(net):
    net.eval()
    x, y = data(2000)
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


teacher = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 6))
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(400):
    x, y = data()
    loss = F.cross_entropy(teacher(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("teacher", accuracy(teacher))
student, T, alpha = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 6)), 3.0, 0.7
opt = torch.optim.Adam(student.parameters(), lr=5e-3)
for step in range(400):
    x, y = data()
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)
    out = student(x)
    distill = F.kl_div(F.log_softmax(out / T, dim=1), soft, reduction="batchmean") * T * T
    loss = alpha * distill + (1 - alpha) * F.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("student", accuracy(student))
