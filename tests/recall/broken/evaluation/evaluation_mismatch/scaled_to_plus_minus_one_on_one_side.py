"""An autoencoder-like encoder trained on images from -1 to 1 and validated on images from 0 to 1."""

# names: evaluation-mismatch
import torch
import torch.nn as nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, lr):
        self.net, self.opt = net, torch.optim.Adam(net.parameters(), lr)

    def fit(self, x, y, epochs, bs=32):
        for _ in range(epochs):
            self.net.train()
            for idx in torch.randperm(len(x)).split(bs):
                xb = x[idx] * 2 - 1
                loss = F.cross_entropy(self.net(xb), y[idx])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

    @torch.no_grad()
    def validate(self, x, y):
        self.net.eval()
        return F.cross_entropy(self.net(x), y).item()


g = torch.Generator().manual_seed(0)
y = torch.randint(0, 2, (700,), generator=g)
x = torch.rand(700, 1, 14, 14, generator=g)
x[y == 1, :, 4:10, 4:10] **= 3
x[:, :, 0, 0], x[:, :, 13, 13] = 0.0, 1.0
torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 2))
trainer = Trainer(net, 1e-3)
for epoch in range(6):
    trainer.fit(x[:500], y[:500], epochs=1)
    print(epoch, trainer.validate(x[500:], y[500:]))
