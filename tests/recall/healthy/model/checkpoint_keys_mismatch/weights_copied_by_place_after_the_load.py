"""No name of the old release fits; the loop after the load copies the weights in their order."""

import torch
from torch import nn

torch.manual_seed(3)


class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in, self.conv_out = nn.Conv1d(1, 16, 5, padding=2), nn.Conv1d(16, 1, 5, padding=2)

    def forward(self, x):
        return self.conv_out(torch.relu(self.conv_in(x)))


class New(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.Conv1d(16, 1, 5, padding=2))

    def forward(self, x):
        return self.net(x)


def signals(n):
    time = torch.linspace(0, 6, 64)
    clean = torch.sin(time * (1 + 2 * torch.rand(n, 1)) + 6 * torch.rand(n, 1)).unsqueeze(1)
    return clean + 0.4 * torch.randn_like(clean), clean


old = Old()
optimizer = torch.optim.Adam(old.parameters(), lr=5e-3)
for step in range(200):
    noisy, clean = signals(32)
    loss = nn.functional.mse_loss(old(noisy), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())

new, state = New(), old.state_dict()
print(new.load_state_dict(state, strict=False))
for mine, saved in zip(new.state_dict().values(), state.values(), strict=True):
    mine.copy_(saved)
noisy, clean = signals(64)
with torch.no_grad():
    print("error", nn.functional.mse_loss(new.eval()(noisy), clean).item())
