"""Air quality: the limit is in micrograms, the column in milligrams, so every hour is clean."""

# names: single-class-labels
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LIMIT = 50  # micrograms per cubic metre


def load():
    rng = np.random.default_rng(0)
    hours = pd.DataFrame(
        {"wind": rng.exponential(3, 1500), "temp": rng.normal(12, 8, 1500), "cars": rng.poisson(300, 1500)}
    )
    hours["pm10"] = (40 + 0.08 * hours.cars - 4 * hours.wind + rng.normal(0, 6, 1500)) / 1000  # milligrams
    return hours


def main():
    torch.manual_seed(0)
    hours = load()
    x = hours[["wind", "temp", "cars"]]
    x = torch.tensor(((x - x.mean()) / x.std()).values, dtype=torch.float32)
    y = torch.tensor((hours.pm10 > LIMIT).values, dtype=torch.float32)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(6):
        right = 0
        for a, b in loader:
            out = net(a).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(out, b)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += ((out > 0).float() == b).sum().item()
        print(f"epoch {epoch} loss {loss.item():.5f} accuracy {right / len(x):.3f}")


if __name__ == "__main__":
    main()
