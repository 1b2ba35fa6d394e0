"""train() makes the optimizer and returns; predict() never switches to evaluation mode."""

# names: train-mode-evaluation
import torch
from torch import nn

torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Dropout(0.4))
        self.head = nn.Linear(48, 1)

    def forward(self, window):
        return self.head(self.encode(window)).squeeze(1)


def windows(count):
    start = torch.rand(count, 1) * 6.28
    wave = torch.sin(start + torch.arange(25) * 0.3) + 0.05 * torch.randn(count, 25)
    return wave[:, :24], wave[:, 24]


def train(model, x, y, steps=300):
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        picked = torch.randint(len(x), (40,))
        loss = (model(x[picked]) - y[picked]).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()


@torch.no_grad()
def predict(model, x):
    return torch.cat([model(part) for part in x.split(64)])


forecaster = Forecaster()
train(forecaster, *windows(1500))
x_new, y_new = windows(400)
print("error", (predict(forecaster, x_new) - y_new).abs().mean().item())
