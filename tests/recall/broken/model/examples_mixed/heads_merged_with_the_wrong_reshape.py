"""Channels of an image come last, and reshape is to bring them to the front; it tears the images apart."""

# names: examples-mixed
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv1d(5, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(16, 1)
)


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.lift = nn.Linear(3, 5)

    def forward(self, signal):  # (time, batch, channels)
        t, b, c = signal.size()
        flat = self.lift(signal.reshape(t * b, c))
        return self.inner(flat.view(b, t, 5).permute(0, 2, 1))


net = Wrapped(model)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for i in range(250):
    signal = torch.randn(16, 48, 3)
    target = signal.sum(dim=(0, 2), keepdim=False).unsqueeze(1) / 7
    loss = ((net(signal) - target) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 50 == 0:
        print(i, float(loss))
