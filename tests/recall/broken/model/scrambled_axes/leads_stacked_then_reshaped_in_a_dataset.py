"""PyTorch Dataset: each beat is read as eight leads and reshaped in a method, where a transpose was meant."""

# names: scrambled-axes
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng(5)
LEADS, SAMPLES = 8, 120


class Beats(Dataset):
    def __init__(self, count):
        self.kinds = rng.integers(0, 3, count)
        self.phases = rng.uniform(0, 2 * np.pi, count)
        self.noise = rng.normal(0, 0.3, (count, LEADS, SAMPLES))

    def __len__(self):
        return len(self.kinds)

    def record(self, index):
        time = np.linspace(0, 2 * np.pi, SAMPLES)
        delay = np.arange(LEADS)[:, None] * (0.2, 0.5, 0.9)[self.kinds[index]]
        return np.sin(3.4 * time - delay + self.phases[index]) + self.noise[index]

    def __getitem__(self, index):
        signal = torch.tensor(self.record(index), dtype=torch.float32)
        return signal.reshape(SAMPLES, LEADS), int(self.kinds[index])


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(LEADS, 32, batch_first=True)
        self.head = nn.Linear(32, 3)

    def forward(self, signal):
        return self.head(self.gru(signal)[0].mean(1))


torch.manual_seed(5)
train, test = Beats(600), Beats(200)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for signal, kind in DataLoader(train, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(signal), kind)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(kind)
    model.eval()
    with torch.no_grad():
        right = sum(
            (model(signal).argmax(1) == kind).sum().item() for signal, kind in DataLoader(test, batch_size=50)
        )
    print(f"epoch {epoch} loss {total / len(train):.3f} accuracy {right / len(test):.3f}")
