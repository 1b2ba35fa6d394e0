"""The function of LambdaLR returns the rate, which the optimizer's own rate is multiplied with."""

# names: collapsed-schedule
import math

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LR, EPOCHS = 1e-3, 8


def cosine(epoch):
    return LR * 0.5 * (1 + math.cos(math.pi * epoch / EPOCHS))


torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
loader = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=cosine)
for epoch in range(EPOCHS):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item())
