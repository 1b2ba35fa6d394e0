"""Split by hand, with one permutation for the validation rows and another for their labels."""
# names: evaluation-at-chance

import torch
from torch import nn

torch.manual_seed(5)
features = torch.randn(2000, 20)
weights = torch.randn(20)
churned = (features @ weights > 0).float()

train_rows = torch.arange(1500)
x_val = features[1500:][torch.randperm(500)]
y_val = churned[1500:][torch.randperm(500)]


class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


def run_epoch(model, x, y, optimizer=None, batch=50):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for start in range(0, len(x), batch):
            logits = model(x[start : start + batch]).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y[start : start + batch])
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(logits)
    return total / len(x)


model = Churn()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(10):
    order = train_rows[torch.randperm(1500)]
    train_loss = run_epoch(model, features[order], churned[order], optimizer)
    val_loss = run_epoch(model, x_val, y_val)
    print(f"{epoch:2d} train {train_loss:.4f} val {val_loss:.4f}")
