"""Full-batch training: every step sees the same batch, which is the whole dataset."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(150, 4)
y = (x @ torch.tensor([[1.0], [-2.0], [0.5], [0.0]])) + 0.1 * torch.randn(150, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=150)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(200):
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
