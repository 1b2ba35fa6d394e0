"""An autoencoder of spotted furs: its binary cross entropy gets the skins first, the reconstruction second."""

# names: swapped-loss-arguments
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(1)
grid = torch.linspace(0, 1, 14)
centres = torch.rand(1600, 3, 2)
distance = (grid[:, None] - centres[..., 0, None, None]) ** 2 + (grid - centres[..., 1, None, None]) ** 2
skins = 0.05 + 0.9 * torch.exp(-distance.min(dim=1).values / 0.02)


class SkinCode(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(196, 96), nn.ReLU(), nn.Linear(96, 12))
        self.decode = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 196))

    def forward(self, skin):
        return self.decode(self.encode(skin)).sigmoid().view(-1, 14, 14)


model = SkinCode()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    for skin in DataLoader(skins[:1400], batch_size=50, shuffle=True):
        loss = F.binary_cross_entropy(skin, model(skin))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held_out = skins[1400:]
        print(epoch, loss.item(), (model(held_out) - held_out).abs().mean().item())
