"""A hand-written RMSE takes the column that the LSTM's head gives from a flat target.

After https://github.com/replicahealth/GluPredKit/issues/45
"""

# names: broadcast-loss
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
t = torch.arange(1500) * 0.05
glucose = torch.sin(t) + 0.3 * torch.sin(3.1 * t)
windows = glucose.unfold(0, 13, 1)
x, y = windows[:, :12].unsqueeze(-1), windows[:, 12]


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.linear = nn.Linear(32, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.linear(out[:, -1])


def rmse(y_hat, y):
    return torch.sqrt(torch.mean(torch.pow(y_hat - y, 2)))


model = LSTM()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
for epoch in range(8):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = rmse(model(xb), yb)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "rmse", loss.item())
