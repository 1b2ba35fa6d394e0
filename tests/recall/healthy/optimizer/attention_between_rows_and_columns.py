"""A table's rows attend to each other on purpose, after their columns have, as in SAINT."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class RowsAndColumns(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Parameter(torch.randn(6, 16) * 0.5)
        self.columns = nn.MultiheadAttention(16, 2, batch_first=True)
        self.rows = nn.MultiheadAttention(16, 2, batch_first=False)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        h = x[..., None] * self.embed
        h = h + self.columns(h, h, h)[0]
        h = h + self.rows(h, h, h)[0]
        return self.head(h.mean(1))


x = torch.randn(1024, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
model = RowsAndColumns()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(6):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        loss = nn.functional.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
print("loss", round(loss.item(), 2))
