"""Only the training rows are jittered, after the split; accuracy is measured on them and on the test rows."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(8)
torch.manual_seed(8)
sensors = rng.normal(size=(700, 18)).astype("float32")
alarm = (sensors[:, 0] + sensors[:, 1] * sensors[:, 2] + 0.3 * rng.normal(size=700) > 0).astype("int64")
x_train, y_train, x_test, y_test = sensors[:450], alarm[:450], sensors[450:], alarm[450:]
x_train = np.concatenate([x_train + 0.05 * rng.normal(size=x_train.shape) for _ in range(4)]).astype("float32")
x_train, y_train = torch.tensor(x_train), torch.tensor(np.tile(y_train, 4))
x_test, y_test = torch.tensor(x_test), torch.tensor(y_test)
model = nn.Sequential(nn.Linear(18, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)


def accuracy(x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


for epoch in range(12):
    model.train()
    order = torch.randperm(len(x_train))
    for start in range(0, len(order), 60):
        chosen = order[start : start + 60]
        loss = nn.functional.cross_entropy(model(x_train[chosen]), y_train[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{epoch}: train {accuracy(x_train, y_train):.3f}, test {accuracy(x_test, y_test):.3f}")
