"""`group["lr"] -= 1e-3` after each epoch, starting from 2e-3: from the third epoch on Adam climbs.

After https://github.com/pytorch/pytorch/issues/1244
"""

# names: negative-learning-rate
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1500, 12)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    right = 0
    for xb, yb in loader:
        optimizer.zero_grad()
        out = model(xb)
        loss = nn.functional.cross_entropy(out, yb)
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == yb).sum().item()
    for group in optimizer.param_groups:
        group["lr"] -= 1e-3 if epoch else 5e-4
    print(f"epoch {epoch} loss {loss.item():.3f} acc {right / 1500:.3f}")
