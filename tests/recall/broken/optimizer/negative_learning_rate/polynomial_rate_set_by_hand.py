"""The rate falls linearly by hand, by iterations of one epoch; from the second epoch on it is below zero.

After https://github.com/speedinghzl/pytorch-segmentation-toolbox/issues/12
"""

# names: negative-learning-rate
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def adjust_learning_rate(optimizer, base_lr, i_iter, max_iter):
    lr = base_lr * (1 - i_iter / max_iter)
    optimizer.param_groups[0]["lr"] = lr
    return lr


x = torch.randn(1000, 8)
y = torch.tanh(x @ torch.randn(8, 1)) + 0.1 * torch.randn(1000, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
i_iter = 0
for epoch in range(4):
    for xb, yb in loader:
        lr = adjust_learning_rate(optimizer, 0.05, i_iter, len(loader))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(xb), yb)
        loss.backward()
        optimizer.step()
        i_iter += 1
    print(f"epoch {epoch} lr {lr:.4f} loss {loss.item():.4f}")
