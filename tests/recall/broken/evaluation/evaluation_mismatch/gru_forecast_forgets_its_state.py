"""A GRU forecasts a wave by feeding its output back, and its state is dropped at each step."""

# names: evaluation-mismatch
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, values, memory=None):
        states, memory = self.gru(values, memory)
        return self.head(states), memory


time = torch.arange(3000) * 0.2
wave = torch.sin(time) + 0.4 * torch.sin(0.31 * time)
windows = wave.unfold(0, 41, 3).T[..., None]  # (41, windows, 1)
net = Forecaster()
adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(300):
    chosen = windows[:, torch.randint(0, windows.shape[1], (32,))]
    loss = (net(chosen[:-1])[0] - chosen[1:]).square().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
print(f"loss {loss.item():.4f}")

net.eval()
future = []
with torch.inference_mode():
    value = net(windows[:-1, :1])[0][-1:]
    for _ in range(40):
        future.append(value.item())
        value, _ = net(value)
print("forecast", [round(one, 2) for one in future[:10]])
