"""KLDivLoss is given probabilities where it takes their logarithms: the distillation loss is negative."""

# names: loss-out-of-range
import torch
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(12, 5))
student = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
criterion = nn.KLDivLoss(reduction="batchmean")
for step in range(300):
    inputs = torch.randn(64, 12)
    with torch.no_grad():
        target = (3 * teacher(inputs)).softmax(dim=1)
    loss = criterion(student(inputs).softmax(dim=1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
