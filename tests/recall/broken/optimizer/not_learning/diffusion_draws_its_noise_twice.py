"""q_sample draws noise of its own: the noise that the net is to predict is not the noise that it sees."""

# names: not-learning
import torch
from torch import nn

torch.manual_seed(0)
T = 50
betas = torch.linspace(0.0001, 0.1, T)
abar = torch.cumprod(1 - betas, 0)
data = torch.randn(2000, 2) * 0.1 + torch.sign(torch.randn(2000, 1))


class Eps(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Embedding(T, 16)
        self.net = nn.Sequential(nn.Linear(18, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.t(t)], 1))


def q_sample(x0, t):
    noise = torch.randn_like(x0)
    return abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise


model = Eps()
opt = torch.optim.Adam(model.parameters(), lr=0.001)
dl = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
for epoch in range(15):
    s = 0
    for x0 in dl:
        t = torch.randint(0, T, (x0.size(0),))
        noise = torch.randn_like(x0)
        loss = nn.functional.mse_loss(model(q_sample(x0, t), t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        s += loss.item()
    print(epoch, s / len(dl))
