"""`loader.shuffle = True` on a loader that is made already: the rows stay in their order, class by class.

After https://github.com/zalandoresearch/fashion-mnist/pull/5
"""

# names: setting-without-effect, sorted-by-label
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
label = torch.arange(5).repeat_interleave(200)
x = torch.randn(1000, 10) + nn.functional.one_hot(label, 10) * 2.0
loader = DataLoader(TensorDataset(x, label), batch_size=20)
loader.shuffle = True
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    right = (model(x).argmax(1) == label).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right:.3f}")
