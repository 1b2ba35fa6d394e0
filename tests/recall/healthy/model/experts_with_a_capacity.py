"""A mixture of experts, each of which takes no more rows than its capacity: who comes first is served."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
EXPERTS, CAPACITY_FACTOR = 4, 1.25


class MixtureOfExperts(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.router = nn.Linear(features, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(features, 24), nn.ReLU(), nn.Linear(24, classes)) for _ in range(EXPERTS)
        )
        self.shared = nn.Linear(features, classes)

    def forward(self, x):
        weight, chosen = self.router(x).softmax(-1).max(-1)
        capacity = max(1, int(CAPACITY_FACTOR * len(x) / EXPERTS))
        out = self.shared(x)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0][:capacity]
            if len(rows):
                out = out.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        return out


x = torch.randn(800, 10)
loader = DataLoader(TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long()), batch_size=40, shuffle=True)
model = MixtureOfExperts(10, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(15):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f}")
