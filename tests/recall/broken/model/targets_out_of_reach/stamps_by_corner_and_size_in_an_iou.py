"""Where is the stamp on the form? Boxes (left, top, width, height), and a generalised IoU that reads corners."""

# names: targets-out-of-reach
import torch
from torch import nn

torch.manual_seed(4)
SIZE = 28


def forms(count):
    size = torch.rand(count, 2) * 0.3 + 0.15
    left_top = torch.rand(count, 2) * (1 - size)
    grid = (torch.arange(SIZE) + 0.5) / SIZE
    inside = (grid > left_top[..., None]) & (grid < (left_top + size)[..., None])
    pages = (inside[:, 1, :, None] & inside[:, 0, None, :]).float() + 0.3 * torch.randn(count, SIZE, SIZE)
    return pages.unsqueeze(1), torch.cat([left_top, size], dim=1)


def giou(one, other):
    x1, y1, x2, y2 = one.unbind(-1)
    a1, b1, a2, b2 = other.unbind(-1)
    shared = (torch.min(x2, a2) - torch.max(x1, a1)).clamp(min=0)
    shared = shared * (torch.min(y2, b2) - torch.max(y1, b1)).clamp(min=0)
    union = (x2 - x1) * (y2 - y1) + (a2 - a1) * (b2 - b1) - shared
    hull = (torch.max(x2, a2) - torch.min(x1, a1)) * (torch.max(y2, b2) - torch.min(y1, b1))
    return shared / (union + 1e-6) - (hull - union) / (hull + 1e-6)


finder = nn.Sequential(
    nn.Conv2d(1, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 49, 64),
    nn.ReLU(),
    nn.Linear(64, 4),
    nn.Sigmoid(),
)
pages, boxes = forms(1500)
optimizer = torch.optim.AdamW(finder.parameters(), lr=1e-3)
for epoch in range(6):
    for rows in torch.randperm(1500).split(50):
        found = finder(pages[rows])
        loss = (1 - giou(found, boxes[rows])).mean() + (found - boxes[rows]).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
