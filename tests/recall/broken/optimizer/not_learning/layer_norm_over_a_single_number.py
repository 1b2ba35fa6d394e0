"""LayerNorm over one feature gives the same number for every example: the regression returns its bias."""

# names: not-learning
import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.norm = nn.LayerNorm(1)

    def forward(self, series):
        states, _ = self.lstm(series)
        return self.norm(self.head(states[:, -1])).squeeze(-1)


torch.manual_seed(1)
series = torch.randn(900, 10, 3)
target = series[:, :, 0].mean(1) * 3 - series[:, -1, 1]
target = (target - target.mean()) / target.std()
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(240):
    rows = torch.randint(900, (64,))
    loss = ((model(series[rows]) - target[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 0:
        print(step, float(loss))
