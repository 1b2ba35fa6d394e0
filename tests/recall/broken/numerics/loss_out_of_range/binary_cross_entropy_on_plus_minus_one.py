"""Binary cross entropy gets labels of -1 and 1: the loss falls without end."""

# names: loss-out-of-range, targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(0)
features = torch.randn(512, 8)
labels = torch.where(features[:, :1] > 0, 1.0, -1.0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(300):
    rows = torch.randint(512, (64,))
    optimizer.zero_grad()
    loss = loss_fn(model(features[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
