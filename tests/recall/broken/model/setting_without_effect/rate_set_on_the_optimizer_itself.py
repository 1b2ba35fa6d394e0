"""The rate is to fall tenfold each epoch: `optimizer.lr = ...`, which no optimizer of PyTorch reads.

After https://github.com/pytorch/pytorch/issues/1244 and https://github.com/pytorch/examples/issues/64
"""

# names: setting-without-effect
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(2000, 20)
y = x @ torch.randn(20, 1) + 0.5 * torch.randn(2000, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))
lr = 0.05
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
for epoch in range(5):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} lr {lr:.1e} loss {total / len(loader):.4f}")
    lr = lr * 0.1
    optimizer.lr = lr
