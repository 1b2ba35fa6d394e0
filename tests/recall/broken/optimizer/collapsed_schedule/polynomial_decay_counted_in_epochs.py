"""A polynomial decay over max_epochs is stepped in the loop over the batches.

After https://github.com/ivadomed/ivadomed/pull/55
"""

# names: collapsed-schedule
import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

config = {"max_epochs": 25, "batch_size": 16, "lr": 0.02, "power": 0.9}


def poly(step):
    return max(0.0, 1 - step / config["max_epochs"]) ** config["power"]


def segment_data(n):
    centre = torch.rand(n, 1) * 32
    place = torch.arange(32).expand(n, 32)
    mask = ((place - centre).abs() < 5).float()
    return mask[:, None] + 0.8 * torch.randn(n, 1, 32), mask


def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=0.9)
    scheduler = LambdaLR(optimizer, poly)
    for epoch in range(config["max_epochs"]):
        total = 0
        for x, mask in loader:
            pred = net(x).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(pred, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 1, 1)
)
train(net, DataLoader(TensorDataset(*segment_data(800)), batch_size=config["batch_size"], shuffle=True))
