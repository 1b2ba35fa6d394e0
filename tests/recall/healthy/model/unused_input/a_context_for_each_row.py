"""A conditional decoder."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 16)
        self.net = nn.Sequential(nn.Linear(16 + 6, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, noise, condition):
        context = self.embed(condition)
        return self.net(torch.cat([noise, context], dim=1))


styles = torch.randn(8, 10) * 2
condition = torch.randint(8, (1600,))
noise = torch.randn(1600, 6)
target = styles[condition] + noise @ torch.randn(6, 10) * 0.3
loader = DataLoader(TensorDataset(noise, condition, target), batch_size=32, shuffle=True)
decoder = Decoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
mse = nn.MSELoss()
for epoch in range(10):
    losses = 0.0
    for z, c, t in loader:
        loss = mse(decoder(z, c), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses += loss.item()
    print(epoch, losses / len(loader))
