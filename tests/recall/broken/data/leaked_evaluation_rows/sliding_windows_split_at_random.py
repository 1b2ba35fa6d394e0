"""Windows that overlap by all but one step are split at random: each test window has neighbours in training.

After https://github.com/Y-debug-sys/Diffusion-TS/issues/67
"""

# names: leaked-evaluation-rows
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
np.random.seed(0)
series = np.cumsum(np.random.randn(900)).astype("float32")
series = (series - series.mean()) / series.std()
WINDOW = 30


def make_windows(data):
    xs, ys = [], []
    for i in range(len(data) - WINDOW - 5):
        xs.append(data[i : i + WINDOW])
        ys.append(float(data[i + WINDOW + 4] > data[i + WINDOW - 1]))
    return torch.tensor(np.array(xs)).unsqueeze(-1), torch.tensor(ys)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = nn.Sequential(nn.Flatten(), nn.Linear(WINDOW, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.flat(x)).squeeze(1)


dataset = TensorDataset(*make_windows(series))
train_size = int(0.8 * len(dataset))
train_set, test_set = random_split(dataset, [train_size, len(dataset) - train_size])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=64)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(40):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum(((model(x) > 0) == (y > 0.5)).sum().item() for x, y in test_loader)
    if epoch % 10 == 9:
        print(epoch, "test accuracy", hits / len(test_set))
