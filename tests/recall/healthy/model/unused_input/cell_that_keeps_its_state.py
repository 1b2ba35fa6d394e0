"""A GRU cell, called in a loop that hands the hidden state on."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)


class RNNClassifier(nn.Module):
    def __init__(self, input_size, hidden_size, n_classes):
        super().__init__()
        self.hidden_size = hidden_size
        self.cell = nn.GRUCell(input_size, hidden_size)
        self.out = nn.Linear(hidden_size, n_classes)

    def forward(self, x):
        h = torch.zeros(x.size(0), self.hidden_size)
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h)
        return self.out(h)


x = torch.randn(1200, 10, 5)
y = x[:, :, 0].sum(1).gt(0).long() + x[:, :, 1].sum(1).gt(0).long()
model = RNNClassifier(5, 40, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    perm = torch.randperm(1000)
    for i in range(0, 1000, 40):
        idx = perm[i : i + 40]
        loss = F.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        acc = (model(x[1000:]).argmax(1) == y[1000:]).float().mean().item()
    print(f"{epoch:2d} {loss.item():.3f} {acc:.3f}")
