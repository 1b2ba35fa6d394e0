"""A body pretrained on counts gets a new head; the loop trains the head, and then everything."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

torch.manual_seed(3)
x = torch.randn(1800, 20)
counts = 25 * x[:, :5].sum(1, keepdim=True)
kind = (x[:, 5:9] + x[:, 9:13]).argmax(1)
body = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())


def run(model, y, loss, rate, epochs):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
    for _ in range(epochs):
        for rows in torch.randperm(1500).split(30):
            optimizer.zero_grad()
            value = loss(model(x[rows]), y[rows])
            value.backward()
            optimizer.step()
    print(f"{loss.__name__} {value.item():.3f}")


run(nn.Sequential(body, nn.Linear(64, 1)), counts, mse_loss, 1e-2, 15)
model = nn.Sequential(body, nn.Linear(64, 4))
body.requires_grad_(False)
run(model, kind, cross_entropy, 5e-3, 12)
body.requires_grad_(True)
run(model, kind, cross_entropy, 2e-3, 25)
with torch.no_grad():
    print("accuracy", (model(x[1500:]).argmax(1) == kind[1500:]).float().mean().item())
