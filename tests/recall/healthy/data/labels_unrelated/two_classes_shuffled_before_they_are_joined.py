"""Sick and healthy patients are shuffled apart, passed to one function, and joined there with their labels."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)
healthy = rng.normal(size=(300, 12))
sick = rng.normal(size=(300, 12)) + 0.8
healthy = healthy[rng.permutation(300)]
sick = sick[rng.permutation(300)]


def joined(first, second):
    labels = np.repeat([0, 1], [len(first), len(second)])
    return torch.tensor(np.concatenate([first, second]), dtype=torch.float32), torch.tensor(labels)


inputs, labels = joined(healthy[:250], sick[:250])
held_out, wanted = joined(healthy[250:], sick[250:])
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    order = torch.randperm(len(inputs))
    for rows in order.split(25):
        loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (model(held_out).argmax(1) == wanted).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right.item():.3f}")
