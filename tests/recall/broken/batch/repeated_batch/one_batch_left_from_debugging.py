"""`batch = next(iter(loader))` above the loop was for a test of overfitting, and stayed."""

# names: repeated-batch
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.peak = torch.randint(0, 6, (n,), generator=g)
        self.x = 0.7 * torch.randn(n, 60, generator=g)
        for i, p in enumerate(self.peak.tolist()):
            self.x[i, 10 * p + 2 : 10 * p + 8] += 1

    def __len__(self):
        return len(self.peak)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.peak[i]}


class Runner:
    def __init__(self):
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 6))
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.train_loader = DataLoader(Spectra(1500, 0), batch_size=16, shuffle=True)
        self.val_loader = DataLoader(Spectra(300, 1), batch_size=50)

    def train(self, steps):
        batch = next(iter(self.train_loader))
        self.net.train()
        for step in range(steps):
            loss = nn.functional.cross_entropy(self.net(batch["x"]), batch["y"])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            if step % 100 == 0:
                print(step, loss.item(), "val", self.validate())
                self.net.train()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        return sum((self.net(b["x"]).argmax(1) == b["y"]).sum().item() for b in self.val_loader) / 300


Runner().train(500)
