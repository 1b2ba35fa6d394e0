"""A mixture density network: the negative log-likelihood of a density goes below 0 and is meant to."""

import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class MDN(nn.Module):
    def __init__(self, n_hidden=32, n_gaussians=4):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh(), nn.Linear(n_hidden, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z = self.z_h(x)
        return self.z_pi(z).log_softmax(-1), self.z_sigma(z).clamp(-6, 3), self.z_mu(z)


def mdn_loss(log_pi, log_sigma, mu, y):
    log_prob = -0.5 * ((y - mu) / log_sigma.exp()) ** 2 - log_sigma - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log_pi + log_prob, dim=1).mean()


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.rand(1500, 1) * 2 - 1
    sign = torch.where(torch.rand(1500, 1) < 0.5, 1.0, -1.0)
    y = sign * (0.3 + 0.2 * x) + 0.02 * torch.randn(1500, 1)
    network = MDN()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
    for epoch in range(25):
        for a, b in loader:
            loss = mdn_loss(*network(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(epoch, loss.item())
