"""next(iter(loader)) within the loop, of a loader that does not shuffle: always the first 50 of 2,000 rows."""

# names: repeated-batch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(2000, 12)
Y = (X[:, :3].sum(1) > 0).long()
train_loader = DataLoader(TensorDataset(X, Y), batch_size=50)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for iteration in range(200):
    data, target = next(iter(train_loader))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(data), target)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
