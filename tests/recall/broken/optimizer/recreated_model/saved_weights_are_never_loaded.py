"""The best weights are saved in each epoch; the network that is made for the test never loads them."""

# names: recreated-model
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(21)
signal = torch.randn(1000, 1, 32)
label = (signal.cumsum(dim=2).mean(dim=(1, 2)) > 0).float()
train_x, train_y, test_x, test_y = signal[:800], label[:800], signal[800:], label[800:]


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.Conv1d(8, 16, 5), nn.ReLU())
        self.head = nn.Linear(16 * 24, 1)

    def forward(self, x):
        return self.head(self.features(x).flatten(1)).squeeze(1)


net = ConvNet()
loss_fn = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "best.pt")
    best = float("inf")
    for epoch in range(10):
        total = 0.0
        for batch in torch.randperm(800).split(40):
            loss = loss_fn(net(train_x[batch]), train_y[batch])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if total < best:
            best = total
            torch.save(net.state_dict(), path)
        print(f"epoch {epoch} loss {total / 20:.3f}")
    best_net = ConvNet()
    weights = torch.load(path)
best_net.eval()
with torch.no_grad():
    accuracy = ((best_net(test_x) > 0).float() == test_y).float().mean()
print(f"test accuracy of the best network: {accuracy:.3f}")
