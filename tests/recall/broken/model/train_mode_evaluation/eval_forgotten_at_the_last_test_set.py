"""validate() switches the mode and back; test(), written later, does not."""

# names: train-mode-evaluation
import torch
import torch.nn as nn

torch.manual_seed(2)
x = torch.randn(900, 10)
y = (x[:, :3].sum(1) > 0).long()
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def train_epoch(lo, hi):
    for i in range(lo, hi, 50):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(x[i : i + 50]), y[i : i + 50]).backward()
        optimizer.step()


@torch.no_grad()
def validate(lo, hi):
    model.eval()
    acc = (model(x[lo:hi]).argmax(1) == y[lo:hi]).float().mean().item()
    model.train()
    return acc


def test(lo, hi):
    hits = 0
    with torch.no_grad():
        for i in range(lo, hi, 25):
            hits += (model(x[i : i + 25]).argmax(1) == y[i : i + 25]).sum().item()
    return hits / (hi - lo)


for epoch in range(8):
    train_epoch(0, 600)
    print(epoch, validate(600, 750))
print("test", test(750, 900))
