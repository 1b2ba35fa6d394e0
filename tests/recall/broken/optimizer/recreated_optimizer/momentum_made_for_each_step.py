"""A training step that makes its optimizer: momentum never builds up."""

# names: recreated-optimizer
import torch
from torch import nn


class Learner:
    def __init__(self, net, lr):
        self.net, self.lr = (net, lr)

    def make_optimizer(self):
        return torch.optim.SGD(self.net.parameters(), lr=self.lr, momentum=0.9, nesterov=True)

    def training_step(self, x, y):
        opt = self.make_optimizer()
        loss = nn.functional.mse_loss(self.net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()


torch.manual_seed(0)
x = torch.randn(1500, 10)
y = torch.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
learner = Learner(nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 1)), 0.001)
for epoch in range(5):
    print(
        epoch,
        sum(
            (
                learner.training_step(a, b)
                for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 50, shuffle=True)
            )
        )
        / 30,
    )
