"""zero_grad stands between backward and step, in the train method of a module."""

# names: no-gradient, unchanged-parameters
import torch
from torch import nn, optim


class Regressor(nn.Module):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
        self.optimizer = optim.AdamW(self.parameters(), lr=lr)
        self.loss = nn.MSELoss()

    def forward(self, x):
        return self.net(x)

    def learn(self, x, y):
        output = self.loss(self(x), y)
        output.backward()
        self.optimizer.zero_grad(set_to_none=False)
        self.optimizer.step()
        return output.item()


torch.manual_seed(0)
regressor = Regressor()
for epoch in range(5):
    losses = []
    for _ in range(30):
        x = torch.randn(32, 5)
        losses.append(regressor.learn(x, x.sum(1, keepdim=True)))
    print(epoch, sum(losses) / len(losses))
