"""Features and labels are shuffled by two permutations: nothing is left to learn."""

# names: labels-unrelated, not-learning
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
centres = 2 * rng.normal(size=(4, 16))
labels = rng.integers(4, size=2048)
features = centres[labels] + rng.normal(size=(2048, 16))
rng.shuffle(features)
rng.shuffle(labels)
torch.manual_seed(0)
data = TensorDataset(torch.tensor(features, dtype=torch.float32), torch.tensor(labels))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(15):
    right = 0
    for batch, target in loader:
        logits = model(batch)
        loss = nn.functional.cross_entropy(logits, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (logits.argmax(1) == target).sum().item()
    print(epoch, loss.item(), right / len(data))
