"""Loan amounts in currency units make the weights diverge in the first steps of plain SGD."""

# names: unscaled-inputs
import torch
from torch import nn

torch.manual_seed(8)
income = torch.randn(900)
debt = torch.randn(900)
age = torch.randn(900)
amount = 52_000 + 14_000 * income - 9_000 * debt + 2_000 * torch.randn(900)
x = torch.stack([income, debt, age], dim=1)
y = amount.unsqueeze(1)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, batch):
        return self.out(torch.relu(self.hidden(batch)))


model = Regressor()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.MSELoss()
for epoch in range(10):
    order = torch.randperm(900)
    for start in range(0, 900, 45):
        rows = order[start : start + 45]
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())
