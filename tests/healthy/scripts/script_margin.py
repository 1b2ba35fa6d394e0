"""ArcFace: cosines times 30, and a margin for the true class. The loss begins far above that of a guess.

$ python tests/healthy/scripts/script_margin.py
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, WIDTH, PEOPLE = 32, 32, 20
SCALE, MARGIN = 30.0, 0.5
EPOCHS = 6


def faces(rows, seed):
    """Return features (rows, 32) and who it is (rows,)."""
    means = torch.randn(PEOPLE, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    people = torch.randint(PEOPLE, (rows,), generator=generator)
    return means[people] + 0.7 * torch.randn(rows, FEATURES, generator=generator), people


class Margin(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(PEOPLE, WIDTH))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, points, people):
        cosines = F.linear(F.normalize(points), F.normalize(self.weight)).clamp(-0.9999, 0.9999)
        true = F.one_hot(people, PEOPLE).bool()
        return SCALE * torch.where(true, (cosines.acos() + MARGIN).cos(), cosines)


def build():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.BatchNorm1d(64), nn.PReLU(), nn.Linear(64, WIDTH))
    networks = nn.ModuleList([encoder, Margin()])
    optimizer = torch.optim.SGD(networks.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return networks, DataLoader(TensorDataset(*faces(1024, seed=1)), batch_size=32, shuffle=True), None, optimizer


def train(networks, loader, loss_fn, optimizer):
    encoder, margin = networks
    features, people = faces(256, seed=2)

    @torch.no_grad()
    def measured():
        encoder.eval()
        loss = F.cross_entropy(margin(encoder(features), people), people).item()
        encoder.train()
        return loss

    before = measured()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            F.cross_entropy(margin(encoder(batch), target), target).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": measured()}


if __name__ == "__main__":
    print(train(*build()))
