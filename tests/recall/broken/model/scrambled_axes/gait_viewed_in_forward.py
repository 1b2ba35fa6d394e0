"""PyTorch modules: windows of gait sensors are viewed as channels-first in the forward pass."""

# names: scrambled-axes
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
STEPS, SENSORS = 50, 4


def windows(count):
    side = torch.randint(0, 2, (count,))
    time = torch.linspace(0, 12, STEPS)
    phase = torch.rand(count, 1) * 6.3
    left, right = torch.sin(time + phase), torch.sin(time + phase + 0.6 + 1.2 * side[:, None])
    noise = torch.randn(count, STEPS, SENSORS)
    noise[:, :, 0] = left + 0.3 * noise[:, :, 0]
    noise[:, :, 1] = right + 0.3 * noise[:, :, 1]
    return noise, side


class Gait(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(SENSORS, 16, 5), nn.ReLU(), nn.Conv1d(16, 16, 5), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, window):
        window = window.view(window.size(0), SENSORS, STEPS)
        return self.head(self.features(window).mean(2))


train, test = windows(800), windows(300)
model = Gait()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for window, side in DataLoader(TensorDataset(*train), batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(window), side)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test[0]).argmax(1) == test[1]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy:.3f}")
