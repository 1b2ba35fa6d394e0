"""An early-stopping class keeps model.state_dict() in a checkpoint; a fresh model gets it for the test."""

# names: weights-kept-by-reference
import numpy as np
import torch
from torch import nn, optim


class EarlyStopping:
    def __init__(self, patience=4):
        self.patience, self.counter, self.best, self.checkpoint = patience, 0, np.inf, None

    def __call__(self, value, model, epoch):
        if value < self.best:
            self.best, self.counter = value, 0
            self.checkpoint = {"epoch": epoch, "model": model.state_dict()}
        else:
            self.counter += 1
        return self.counter >= self.patience


def build():
    return nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))


torch.manual_seed(0)
x = torch.randn(140, 10)
y = x[:, :3].sum(1, keepdim=True) + torch.randn(140, 1)
train_x, train_y, valid_x, valid_y = x[:60], y[:60], x[60:], y[60:]
model = build()
optimizer = optim.Adam(model.parameters(), lr=3e-3)
stopper = EarlyStopping()
for epoch in range(60):
    model.train()
    for rows in torch.randperm(60).split(12):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(train_x[rows]), train_y[rows]).backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        value = nn.functional.mse_loss(model(valid_x), valid_y).item()
    if stopper(value, model, epoch):
        break
print("stopped at", epoch, "best", stopper.checkpoint["epoch"])
final = build()
final.load_state_dict(stopper.checkpoint["model"])
with torch.no_grad():
    print("test", nn.functional.mse_loss(final(valid_x), valid_y).item())
