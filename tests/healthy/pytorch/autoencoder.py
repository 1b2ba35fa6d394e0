"""An autoencoder: each batch is a single tensor, which is its own target.

$ python tests/healthy/pytorch/autoencoder.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader

FEATURES, HIDDEN_FACTORS = 32, 4
EPOCHS = 15


def signals(rows, seed):
    """Return signals (rows, 32), each a mixture of four hidden factors, and a little noise."""
    mixture = torch.randn(HIDDEN_FACTORS, FEATURES, generator=torch.Generator().manual_seed(0)) / 2
    generator = torch.Generator().manual_seed(seed)
    factors = torch.randn(rows, HIDDEN_FACTORS, generator=generator)
    return factors @ mixture + 0.1 * torch.randn(rows, FEATURES, generator=generator)


def build():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, HIDDEN_FACTORS))
    decoder = nn.Sequential(nn.Linear(HIDDEN_FACTORS, 32), nn.ReLU(), nn.Linear(32, FEATURES))
    model = nn.Sequential(encoder, decoder)
    loader = DataLoader(signals(1024, seed=1), batch_size=32, shuffle=True)
    return model, loader, nn.MSELoss(), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    held_out = signals(512, seed=2)

    @torch.no_grad()
    def evaluate():
        return loss_fn(model(held_out), held_out).item()

    before = evaluate()
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), batch).backward()
            optimizer.step()
    return {"loss_before": before, "loss_after": evaluate()}


if __name__ == "__main__":
    print(train(*build()))
