"""Search: a ranker is fitted to clicks, then tuned by preferences relative to a copy, with a second optimizer."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
queries, pages = torch.randn(1600, 12), torch.randn(1600, 12)
clicked = ((queries * pages).sum(1) > 0).float()
ranker = nn.Sequential(nn.Linear(36, 64), nn.ReLU(), nn.Linear(64, 1))


def features(query, page):
    return torch.cat([query, page, query * page], 1)


def fit_clicks(epochs):
    steps = torch.optim.Adam(ranker.parameters(), 2e-3)
    for epoch in range(epochs):
        for query, page, click in DataLoader(TensorDataset(queries, pages, clicked), 64, shuffle=True):
            loss = nn.functional.binary_cross_entropy_with_logits(ranker(features(query, page))[:, 0], click)
            steps.zero_grad()
            loss.backward()
            steps.step()
        print(f"clicks, epoch {epoch}: {loss.item():.4f}")
    return steps


def prefer(frozen, rounds):
    """Raise the score of the better page relative to the frozen ranker."""
    tuner = torch.optim.AdamW(ranker.parameters(), 5e-4)
    for number in range(rounds):
        query, one, two = torch.randn(48, 12), torch.randn(48, 12), torch.randn(48, 12)
        first = ((query * one).sum(1) > (query * two).sum(1))[:, None]
        good, bad = torch.where(first, one, two), torch.where(first, two, one)
        pairs = torch.cat([features(query, good), features(query, bad)])
        now = ranker(pairs)
        with torch.inference_mode():
            before = frozen(pairs)
        gain = 0.5 * (now - before.clone())
        loss = nn.functional.softplus(gain[48:] - gain[:48]).mean()
        tuner.zero_grad()
        loss.backward()
        tuner.step()
        if number % 10 == 0:
            print(f"preferences, round {number}: {loss.item():.4f}")


first = fit_clicks(4)
frozen = copy.deepcopy(ranker).requires_grad_(False)
prefer(frozen, rounds=60)
with torch.no_grad():
    right = (ranker(features(queries, pages))[:, 0] > 0) == (clicked > 0)
print(f"accuracy {right.float().mean():.3f}")
