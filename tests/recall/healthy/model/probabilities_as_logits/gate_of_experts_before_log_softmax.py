"""A softmax weighs the scores of three experts, whose sum goes through log_softmax."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(16)
inputs = torch.randn(1500, 10)
labels = (inputs[:, 0] > 0).long() + 2 * (inputs[:, 1] * inputs[:, 2] > 0).long()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(10, 3)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4)) for _ in range(3)
        )

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=1)
        scores = torch.stack([expert(x) for expert in self.experts], dim=1)
        return F.log_softmax((weights.unsqueeze(2) * scores).sum(dim=1), dim=1)


model = Experts()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for rows in torch.randperm(1200).split(40):
        loss = F.nll_loss(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(inputs[1200:]).argmax(1) == labels[1200:]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right.item():.3f}")
