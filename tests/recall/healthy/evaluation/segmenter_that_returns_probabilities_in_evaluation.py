"""A segmenter returns logits while it trains and probabilities afterwards, which are compared with 0.5."""

import torch
from torch import nn

torch.manual_seed(13)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()
        )
        self.head = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        logits = self.head(self.body(x))
        return logits if self.training else torch.sigmoid(logits)


def squares(n):
    masks = torch.zeros(n, 1, 16, 16)
    for mask in masks:
        top, left = torch.randint(0, 10, (2,)).tolist()
        mask[0, top : top + 6, left : left + 6] = 1
    return masks + 0.4 * torch.randn(n, 1, 16, 16), masks


images, masks = squares(320)
test_images, test_masks = squares(64)
model = Segmenter()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(320).split(16):
        optimizer.zero_grad()
        loss = criterion(model(images[rows]), masks[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        predicted = model(test_images) > 0.5
        overlap = (predicted & (test_masks > 0)).sum() / (predicted | (test_masks > 0)).sum()
    print(f"epoch {epoch}: loss {loss.item():.4f}, IoU {overlap.item():.3f}")
