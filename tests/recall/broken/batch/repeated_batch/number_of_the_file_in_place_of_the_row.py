"""Vibrations: rows are in 12 files; __getitem__ finds the file of an index and always reads its first row."""

# names: repeated-batch
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Vibrations(Dataset):
    def __init__(self, files, rows, seed):
        generator = torch.Generator().manual_seed(seed)
        self.rows = rows
        self.faulty = torch.randint(0, 2, (files, rows), generator=generator)
        self.files = torch.randn(files, rows, 48, generator=generator)
        self.files[..., :6] += 1.2 * self.faulty[..., None]

    def __len__(self):
        return self.files.shape[0] * self.rows

    def __getitem__(self, index):
        file = index // self.rows
        row = (index - file * self.rows) // self.rows
        return self.files[file, row], self.faulty[file, row].float()


torch.manual_seed(1)
train, test = Vibrations(12, 100, seed=1), Vibrations(3, 100, seed=2)
net = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(5):
    total = 0.0
    for signal, faulty in DataLoader(train, batch_size=24, shuffle=True):
        loss = nn.functional.binary_cross_entropy_with_logits(net(signal)[:, 0], faulty)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(signal)
    with torch.no_grad():
        right = ((net(test.files)[..., 0] > 0) == test.faulty.bool()).float().mean()
    print(f"epoch {epoch}: loss {total / len(train):.4f}, accuracy {right:.3f}")
