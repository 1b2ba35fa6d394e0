"""val_loader is made of train_ds; val_ds is split off and never read."""

# names: leaked-evaluation-rows
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Genes(Dataset):
    def __init__(self, n=400):
        g = torch.Generator().manual_seed(7)
        self.x = torch.randn(n, 50, generator=g)
        self.y = (self.x[:, :4].sum(1) + 2 * torch.randn(n, generator=g) > 0).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"expression": self.x[i], "label": self.y[i]}


def get_loaders(batch_size):
    ds = Genes()
    train_ds, val_ds = random_split(ds, [320, 80], torch.Generator().manual_seed(0))  # noqa: RUF059
    train_loader = DataLoader(train_ds, batch_size=batch_size, shuffle=True)
    val_loader = DataLoader(train_ds, batch_size=batch_size, shuffle=False)
    return train_loader, val_loader


class Runner:
    def __init__(self):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(50, 64), nn.ReLU(), nn.Linear(64, 2))
        self.opt = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.train_loader, self.val_loader = get_loaders(32)

    def train_epoch(self):
        self.model.train()
        for batch in self.train_loader:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.model(batch["expression"]), batch["label"]).backward()
            self.opt.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = n = 0
        for batch in self.val_loader:
            hits += (self.model(batch["expression"]).argmax(-1) == batch["label"]).sum().item()
            n += len(batch["label"])
        return hits / n


runner = Runner()
for epoch in range(25):
    runner.train_epoch()
    if epoch % 5 == 4:
        print(epoch, f"val acc {runner.validate():.3f}")
