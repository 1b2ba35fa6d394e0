"""A sensor network takes the weights of another task; the regression head, which these lack, stays frozen."""

# names: optimizer-misses-parameters
import torch
from torch import nn

torch.manual_seed(7)


class Sensors(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(3, 32, 5, padding=2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(nn.Conv1d(32, 32, 3, padding=1), nn.ReLU()) for _ in range(3))
        self.regress = nn.Linear(32, outputs)

    def forward(self, signal):
        signal = self.stem(signal)
        for block in self.blocks:
            signal = signal + block(signal)
        return self.regress(signal.mean(-1))


signals = torch.randn(800, 3, 40)
targets = torch.stack([signals[:, 0].std(1), signals[:, 1].abs().mean(1)], 1)

earlier = Sensors(5)
other = torch.randn(800, 5) * 0.1 + signals.mean((1, 2))[:, None]
optimizer = torch.optim.Adam(earlier.parameters(), lr=1e-3)
for step in range(60):
    rows = torch.randint(800, (64,))
    loss = nn.functional.mse_loss(earlier(signals[rows]), other[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
state = {name: tensor for name, tensor in earlier.state_dict().items() if not name.startswith("regress")}

model = Sensors(2)
model.load_state_dict(state, strict=False)
model.requires_grad_(False)
model.blocks[-1].requires_grad_(True)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(800).split(50):
        loss = nn.functional.mse_loss(model(signals[rows]), targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 16:.4f}")
