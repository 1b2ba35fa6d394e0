"""House prices: standardised target, the error printed in dollars; a Lightning-like module by hand."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(0)
torch.manual_seed(0)
df = pd.DataFrame(
    {"sqft": rng.uniform(500, 4000, 1500), "beds": rng.integers(1, 6, 1500), "age": rng.uniform(0, 90, 1500)}
)
df["price"] = 80 * df.sqft + 15000 * df.beds - 600 * df.age + rng.normal(0, 15000, 1500)
train, val = df.iloc[:1200], df.iloc[1200:]
mean, std = train.mean(), train.std()


def to_dataset(frame):
    z = (frame - mean) / std
    return TensorDataset(
        torch.tensor(z[["sqft", "beds", "age"]].values, dtype=torch.float32),
        torch.tensor(z[["price"]].values, dtype=torch.float32),
    )


class PriceModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.huber_loss(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        return (self.net(x) - y).abs().mean() * std.price

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3)


module = PriceModule()
optimizer = module.configure_optimizers()
train_loader = DataLoader(to_dataset(train), batch_size=40, shuffle=True)
val_loader = DataLoader(to_dataset(val), batch_size=100)
for epoch in range(12):
    module.train()
    for i, batch in enumerate(train_loader):
        optimizer.zero_grad()
        loss = module.training_step(batch, i)
        loss.backward()
        optimizer.step()
    module.eval()
    with torch.no_grad():
        mae = torch.stack([module.validation_step(b, i) for i, b in enumerate(val_loader)]).mean()
    print(f"epoch {epoch:02d} loss {loss.item():.4f} val mae ${mae.item():,.0f}")
