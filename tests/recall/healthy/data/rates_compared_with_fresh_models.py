"""A grid of learning rates, each with a fresh model on three folds: the extremes are bad, and meant to be."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn

X, y = load_breast_cancer(return_X_y=True)


def score(lr, fold, train, test):
    torch.manual_seed(fold)
    scaler = StandardScaler().fit(X[train])
    xa, xb = (torch.tensor(scaler.transform(X[i])).float() for i in (train, test))
    ya, yb = torch.tensor(y[train]).float(), torch.tensor(y[test])
    model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(model.parameters(), lr, momentum=0.9)
    for _ in range(8):
        for i in torch.randperm(len(xa)).split(32):
            opt.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(xa[i]).squeeze(1), ya[i]).backward()
            opt.step()
    with torch.no_grad():
        return ((model(xb).squeeze(1) > 0) == yb.bool()).float().mean().item()


results = {}
for lr in (1e-6, 1e-3, 1e-1, 30.0):
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    results[lr] = sum(score(lr, k, a, b) for k, (a, b) in enumerate(folds)) / 3
    print(lr, round(results[lr], 4))
print("best", max(results, key=results.get))
