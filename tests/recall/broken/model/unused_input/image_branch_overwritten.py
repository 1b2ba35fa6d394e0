"""A model of pictures and tables: the second assignment overwrites the first branch."""

# names: unused-input
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Houses(Dataset):
    def __init__(self, n=640):
        self.photos, self.table = torch.rand(n, 3, 16, 16), torch.randn(n, 6)
        self.price = self.photos.mean((1, 2, 3)) * 20 + self.table[:, 0]

    def __len__(self):
        return len(self.price)

    def __getitem__(self, i):
        return self.photos[i], self.table[i], self.price[i]


class Fusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.mlp = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, photo, features):
        x = self.cnn(photo)
        x = self.mlp(features)
        return self.head(x).squeeze(-1)


model = Fusion()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
mse = nn.MSELoss()
for epoch in range(5):
    for photo, features, price in DataLoader(Houses(), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = mse(model(photo, features), price)
        loss.backward()
        optimizer.step()
print("mse", loss.item())
