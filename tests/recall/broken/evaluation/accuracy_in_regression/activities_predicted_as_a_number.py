"""A network predicts the number of an activity from acceleration, by squared error; the number is rounded."""

# names: accuracy-in-regression
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACTIVITIES = ["walking", "lying", "running", "sitting", "cycling", "standing"]
rng = np.random.default_rng(2)
torch.manual_seed(2)
speed = np.array([1.8, 0.1, 3.0, 0.2, 1.2, 0.3])
tilt = np.array([0.1, 1.5, 0.2, 0.6, 0.9, 0.0])


def recordings(count):
    activity = rng.integers(len(ACTIVITIES), size=count)
    time = np.linspace(0, 6, 24)
    swing = np.sin(speed[activity][:, None] * 3 * time + rng.uniform(0, 0.6, (count, 1)))
    waves = speed[activity][:, None] * swing + tilt[activity][:, None]
    noisy = waves + 1.2 * rng.normal(size=waves.shape)
    return torch.tensor(noisy, dtype=torch.float32), torch.tensor(activity)


train = TensorDataset(*recordings(1500))
signals, wanted = recordings(400)
loader = DataLoader(train, batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(24, 48), nn.Tanh(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for batch, activity in loader:
        loss = nn.functional.mse_loss(model(batch).squeeze(1), activity.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        answers = model(signals).squeeze(1).round().clamp(0, 5).long()
    model.train()
    print(f"epoch {epoch}: loss {loss.item():.3f}, correct {(answers == wanted).float().mean():.1%}")
