"""The target is compared with "yes" where the table says "Yes": every float label of the churn model is 0."""

# names: single-class-labels
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
usage = rng.normal(size=(1200, 9)).astype("float32")
churn = np.where(usage[:, 0] + usage[:, 1] + rng.normal(size=1200) > 1, "Yes", "No")

X = torch.from_numpy(usage)
y = torch.from_numpy((churn == "yes").astype("float32")).unsqueeze(1)
split = 1000
train_loader = DataLoader(TensorDataset(X[:split], y[:split]), batch_size=64, shuffle=True)


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)


model = ChurnNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    epoch_loss = 0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    model.eval()
    with torch.no_grad():
        acc = ((model(X[split:]) > 0).float() == y[split:]).float().mean()
    print(f"{epoch}: loss {epoch_loss / len(train_loader):.4f} acc {acc:.4f}")
