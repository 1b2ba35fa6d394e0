"""Pictures from 0 to 255, with batch norm after the first convolution and He's weights in each layer."""

import torch
from torch import nn

torch.manual_seed(1)
kinds = torch.randn(8, 3, 4, 4).repeat_interleave(3, 2).repeat_interleave(3, 3)
labels = torch.randint(0, 8, (1200,))
images = (128 + 50 * (kinds[labels] + 0.6 * torch.randn(1200, 3, 12, 12))).clamp(0, 255).round()
train, test = torch.arange(1000), torch.arange(1000, 1200)

net = nn.Sequential(
    nn.Conv2d(3, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 6 * 6, 8),
)
for layer in net:
    if isinstance(layer, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(layer.weight, mode="fan_out")
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)

for epoch in range(6):
    net.train()
    order = train[torch.randperm(len(train))]
    for rows in order.split(40):
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = (net(images[test]).argmax(1) == labels[test]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, test accuracy {right:.3f}")
