"""How a deep linear network learns the singular values of its teacher one after the other (Saxe et al., 2013)."""

import torch
from torch import nn

torch.manual_seed(1)
left, _ = torch.linalg.qr(torch.randn(16, 16))
right, _ = torch.linalg.qr(torch.randn(16, 16))
strengths = torch.zeros(16)
strengths[:4] = torch.tensor([4.0, 3.0, 2.0, 1.0])
teacher = left @ torch.diag(strengths) @ right.T
x = torch.randn(1000, 16)
y = x @ teacher.T + 0.05 * torch.randn(1000, 16)

student = nn.Sequential(*(nn.Linear(16, 16, bias=False) for _ in range(3)))
for layer in student:
    nn.init.orthogonal_(layer.weight, gain=0.3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
for step in range(600):
    rows = torch.randint(0, 1000, (100,))
    loss = ((student(x[rows]) - y[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        product = student[2].weight @ student[1].weight @ student[0].weight
        found = torch.linalg.svdvals(product.detach())[:4]
        print(step, round(loss.item(), 4), [round(value, 2) for value in found.tolist()])
