"""Rare faults are multiplied with a little noise first, and split afterwards: their copies are on both sides."""

# names: leaked-evaluation-rows
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(3)


class Vibrations(Dataset):
    """Measurements of machines; the faulty ones are rare, so they are repeated with noise."""

    def __init__(self, sound=1200, faulty=150, times=6):
        fine, broken = torch.randn(sound, 24), torch.randn(faulty, 24) * 1.1
        broken = broken.repeat(times, 1)
        broken = broken + 0.05 * torch.randn_like(broken)
        self.rows = torch.cat([fine, broken])
        self.labels = torch.cat([torch.zeros(sound), torch.ones(faulty * times)])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index], self.labels[index]


def run_epoch(net, loader, optimizer=None):
    net.train(optimizer is not None)
    right = 0
    with torch.set_grad_enabled(optimizer is not None):
        for rows, labels in loader:
            scores = net(rows).squeeze(1)
            if optimizer is not None:
                optimizer.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(scores, labels).backward()
                optimizer.step()
            right += ((scores > 0) == (labels > 0.5)).sum().item()
    return right / len(loader.dataset)


learned, held = random_split(Vibrations(), [0.8, 0.2])
net = nn.Sequential(nn.Linear(24, 128), nn.ReLU(), nn.Linear(128, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
for epoch in range(15):
    training = run_epoch(net, DataLoader(learned, 64, shuffle=True), optimizer)
    print(f"epoch {epoch}: accuracy {training:.3f}, held out {run_epoch(net, DataLoader(held, 128)):.3f}")
