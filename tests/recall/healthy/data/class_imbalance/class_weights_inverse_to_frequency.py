"""A rare class is weighed up by the inverse of its frequency."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rare = torch.rand(3000) < 0.1
features = torch.randn(3000, 12) + rare[:, None] * torch.cat([torch.full((4,), 0.6), torch.zeros(8)])
emotion = rare.long()
weights = torch.tensor([1 / (emotion == 0).float().mean(), 1 / (emotion == 1).float().mean()])

train = DataLoader(TensorDataset(features[:2400], emotion[:2400]), batch_size=60, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Dropout(0.1), nn.Linear(32, 2))
loss_fn = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    model.train()
    for xb, yb in train:
        optimizer.zero_grad()
        loss_fn(model(xb), yb).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = model(features[2400:]).argmax(1)
    truth = emotion[2400:]
    recall = (predicted[truth == 1] == 1).float().mean()
    print(f"{epoch} accuracy {(predicted == truth).float().mean():.3f} recall of the rare {recall:.3f}")
