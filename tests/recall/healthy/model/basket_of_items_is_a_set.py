"""What does a basket cost? Attention over its items, each of which is in it once: their order means nothing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
price = torch.rand(60)
items = torch.stack([torch.randperm(60)[:8] for _ in range(2000)])
total = price[items].sum(1)
target = (total - total.mean()) / total.std()


class BasketModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.item = nn.Embedding(60, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(32, 1)

    def forward(self, items):
        return self.head(self.encoder(self.item(items)).mean(1)).squeeze(1)


train = DataLoader(TensorDataset(items[:1700], target[:1700]), batch_size=50, shuffle=True)
model = BasketModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for x, y in train:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(items[1700:]), target[1700:]).item())
