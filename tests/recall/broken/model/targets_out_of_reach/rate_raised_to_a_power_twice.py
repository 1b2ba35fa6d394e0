"""Counts: the model ends in exp, and poisson_nll_loss takes exp of it again."""

# names: targets-out-of-reach
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X = torch.randn(1500, 5)
y = torch.poisson(torch.exp(1.0 + 0.6 * X[:, 0]))


class GLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Linear(5, 16)
        self.o = nn.Linear(16, 1)

    def forward(self, x):
        return torch.exp(self.o(torch.tanh(self.h(x)))).squeeze(-1)


m = GLM()
opt = torch.optim.Adam(m.parameters(), 0.01)
for epoch in range(8):
    for a, b in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), 50, shuffle=True):
        loss = F.poisson_nll_loss(m(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), m(X).mean().item(), y.mean().item())
