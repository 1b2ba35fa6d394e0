"""The log-likelihood is minimised, not its negative: the mean runs away from the targets."""

# names: inverted-loss, loss-out-of-range, loss-divergence
import torch
import torch.nn as nn
from torch.distributions import Normal
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x = torch.randn(1500, 6)
y = (x[:, :1] * 2 - x[:, 1:2] + 0.5 * x[:, 2:3].sin()) + 0.2 * torch.randn(1500, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)


class MeanAndScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.Tanh())
        self.mean = nn.Linear(32, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return Normal(self.mean(self.body(x)), self.log_std.exp().clamp(min=0.1, max=10))


model = MeanAndScale()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for xb, yb in loader:
        dist = model(xb)
        loss = dist.log_prob(yb).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        rmse = (model(x).mean - y).pow(2).mean().sqrt()
    print(f"epoch {epoch}: loss {loss.item():.3f} rmse {rmse:.3f}")
