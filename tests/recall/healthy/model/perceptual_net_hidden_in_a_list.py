"""A fixed network for a perceptual loss is kept in a list, unregistered; a pretrained stem feeds."""

import torch
from torch import nn

torch.manual_seed(0)


class Denoiser(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
        self._features = [features.requires_grad_(False)]

    def forward(self, x):
        return self.body(x)

    def loss(self, output, clean):
        features = self._features[0]
        return (features(output) - features(clean)).square().mean() + (output - clean).square().mean()


features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3)).eval()
stem = nn.Conv2d(1, 4, 3, padding=1)
stem.load_state_dict({"weight": torch.randn(4, 1, 3, 3) / 3, "bias": torch.zeros(4)})  # from elsewhere
model = Denoiser(features)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(120):
    clean = torch.rand(16, 1, 1, 1) * torch.ones(16, 1, 10, 10)
    output = model(stem(clean + 0.3 * torch.randn_like(clean)))
    loss = model.loss(output, clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
