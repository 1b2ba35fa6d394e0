"""One positive in twenty, weighted in the loss; recall is printed beside accuracy."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(4)
n = 3000
y = (torch.rand(n) < 0.05).long()
x = torch.randn(n, 16)
x[y == 1, :4] += 1.2
train_set, val_set = random_split(TensorDataset(x, y), [2400, 600])
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 12.0]))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
train_loader, val_loader = DataLoader(train_set, 64, shuffle=True), DataLoader(val_set, 100)
for epoch in range(10):
    model.train()
    for a, b in train_loader:
        opt.zero_grad()
        loss = criterion(model(a), b)
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        pred = torch.cat([model(a).argmax(1) for a, _ in val_loader])
    true = torch.cat([b for _, b in val_loader])
    recall = (pred[true == 1] == 1).float().mean().item()
    print(f"epoch {epoch} accuracy {(pred == true).float().mean().item():.3f} recall {recall:.3f}")
