"""A linear schedule made for epochs is stepped at each iteration: the rate falls below zero.

After https://github.com/ziqi-jin/finetune-anything/issues/57
"""

# names: negative-learning-rate, collapsed-schedule, learning-rate-too-high, loss-divergence
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def get_scheduler(optimizer, max_epoch=1, n_epochs_init=10, n_epochs_decay=20):
    def lambda_rule(epoch):
        return 1.0 - max(0, epoch + 1 - n_epochs_init) / float(n_epochs_decay + 1)

    return lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda_rule)


x = torch.randn(1600, 12)
y = torch.sin(x[:, 0]) + x[:, 1] * x[:, 2]
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scheduler = get_scheduler(optimizer)
for epoch in range(6):
    total = 0.0
    for bx, by in loader:
        loss = nn.functional.mse_loss(model(bx).squeeze(1), by)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
    if not torch.isfinite(loss):
        break
