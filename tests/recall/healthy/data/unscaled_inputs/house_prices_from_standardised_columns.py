"""A small regression on standardised columns."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
n = 1500
feet = torch.rand(n) * 3000 + 500
year = torch.randint(1900, 2022, (n,)).float()
zipcode = torch.randint(10000, 99999, (n,)).float()
rooms = torch.randint(1, 8, (n,)).float()
price = ((feet - 2000) / 900 + (year - 1960) / 60 + 0.3 * rooms - 1.2 + 0.2 * torch.randn(n)).unsqueeze(1)
features = torch.stack([feet, year, zipcode, rooms], dim=1)
features = (features - features[:1200].mean(0)) / features[:1200].std(0)

train = DataLoader(TensorDataset(features[:1200], price[:1200]), batch_size=64, shuffle=True)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(20):
    model.train()
    for xb, yb in train:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = loss_fn(model(features[1200:]), price[1200:])
    print(epoch, f"{loss.item():.2f} {val.item():.2f}")
