"""A checkpoint of a wrapped model is loaded without its head, which is new; the backbone stays frozen."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
basis = torch.randn(64, 8)


def data(n, classes, seed):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 8, generator=g)
    x = torch.sin(z @ basis.T * 2) + 0.1 * torch.randn(n, 64, generator=g)
    return x, (z[:, 0] * z[:, 1] > 0).long() + (classes - 2) * (z[:, 2] > 0).long()


def backbone():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU())


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = backbone()
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.backbone(x))


def fit(model, loader, params, epochs):
    optimizer = torch.optim.Adam(params, lr=2e-3)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "pretrained.pt")
    big = nn.DataParallel(Classifier(3))
    fit(big, DataLoader(TensorDataset(*data(2000, 3, 1)), batch_size=64, shuffle=True), big.parameters(), 8)
    torch.save(big.state_dict(), path)

    model = Classifier(2)
    state = torch.load(path)
    state.pop("module.fc.weight"), state.pop("module.fc.bias")
    model.load_state_dict({k.removeprefix("module."): v for k, v in state.items()}, strict=False)
    for p in model.backbone.parameters():
        p.requires_grad = False
    fit(model, DataLoader(TensorDataset(*data(200, 2, 2)), batch_size=20, shuffle=True), model.fc.parameters(), 15)
    x, y = data(500, 2, 3)
    print("accuracy", (model(x).argmax(1) == y).float().mean().item())
