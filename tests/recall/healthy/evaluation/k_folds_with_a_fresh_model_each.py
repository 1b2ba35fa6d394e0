"""Cross-validation: a model and an optimizer of its own for every fold, best weights copied."""

import copy

import numpy as np
import torch
from sklearn.model_selection import KFold
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
dataset = TensorDataset(x, y)


def fit(model, train, val, epochs=8):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    best, best_state = 0.0, None
    for _ in range(epochs):
        model.train()
        for a, b in DataLoader(train, 32, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(a), b).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            score = np.mean([(model(a).argmax(1) == b).float().mean().item() for a, b in DataLoader(val, 60)])
        if score > best:
            best, best_state = score, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    return best


scores = []
for fold, (tr, va) in enumerate(KFold(4, shuffle=True, random_state=0).split(x)):
    net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
    scores.append(fit(net, Subset(dataset, tr), Subset(dataset, va)))
    print(f"fold {fold}: {scores[-1]:.3f}")
print("mean", np.mean(scores))
