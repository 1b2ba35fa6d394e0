"""A function trains a teacher; its dropout stays on while it labels batches for a student, without gradients."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def network(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 4))


def fit(model, target_of, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        labels = torch.randint(4, (32,))
        x = torch.randn(32, 16) + 2 * F.one_hot(labels, 16)
        loss = F.cross_entropy(model(x), target_of(x, labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def softened(x, _labels):
    with torch.no_grad():
        return F.softmax(teacher(x) / 2, dim=1)


teacher, student = network(128), network(16)
fit(teacher, lambda _x, labels: labels, 200)
fit(student, softened, 300)
student.eval()
labels = torch.randint(4, (500,))
with torch.no_grad():
    scores = student(torch.randn(500, 16) + 2 * F.one_hot(labels, 16))
print("accuracy", (scores.argmax(1) == labels).float().mean().item())
