"""Machines that fail: a causal encoder over events, and the head reads the place of the first event."""

# names: unused-input
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
EVENTS, FEATURES = 14, 5
readings = torch.randn(1500, EVENTS, FEATURES)
fails = (readings[:, 4:, 0].mean(1) > 0).long()


class FailureModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(FEATURES, 32)
        self.place = nn.Parameter(torch.randn(EVENTS, 32) * 0.02)
        block = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, 2)
        self.decide = nn.Linear(32, 2)

    def forward(self, events):
        ahead = nn.Transformer.generate_square_subsequent_mask(EVENTS)
        seen = self.blocks(self.project(events) + self.place, mask=ahead, is_causal=True)
        return self.decide(seen[:, 0])


def train(net, loader, epochs):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(epochs):
        total = 0.0
        for events, label in loader:
            loss = nn.functional.cross_entropy(net(events), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
        print(f"epoch {epoch}: {total / len(loader.dataset):.4f}")


train(FailureModel(), DataLoader(TensorDataset(readings, fails), 50, shuffle=True), 5)
