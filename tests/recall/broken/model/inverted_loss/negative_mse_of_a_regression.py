"""A minus stands before the criterion, left over from a reward."""

# names: inverted-loss, loss-divergence
import torch
from torch import nn, optim

torch.manual_seed(4)
X = torch.rand(900, 5)
y = 3 * X[:, 0] - 2 * X[:, 1] ** 2 + X[:, 2] * X[:, 3]
net = nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 1))
criterion = nn.MSELoss()
optimizer = optim.Adam(net.parameters(), lr=5e-4)
for epoch in range(12):
    order = torch.randperm(720)
    for start in range(0, 720, 40):
        rows = order[start : start + 40]
        optimizer.zero_grad()
        prediction = net(X[rows]).squeeze(1)
        loss = -criterion(prediction, y[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        held_out = criterion(net(X[720:]).squeeze(1), y[720:])
    net.train()
    print(f"epoch {epoch}: train {loss.item():.3f}, held out {held_out.item():.3f}")
