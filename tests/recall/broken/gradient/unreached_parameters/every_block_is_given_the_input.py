"""for layer in blocks: out = layer(x). Only the last block counts.

After https://github.com/cyclomon/UNSB/issues/29
"""

# names: unreached-parameters
import argparse

import torch
import torch.nn as nn


class ResnetBlock(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.conv_block = nn.ModuleList()
        for _ in range(depth):
            self.conv_block.append(
                nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.InstanceNorm2d(width), nn.ReLU())
            )

    def forward(self, x):
        for layer in self.conv_block:
            out = layer(x)
        return x + out


class Denoiser(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.block = ResnetBlock(width, 3)
        self.tail = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, x):
        return self.tail(self.block(self.head(x)))


def images(n, size=16):
    rows = torch.rand(n, 1, size, 1).gt(0.5).float()
    cols = torch.rand(n, 1, 1, size).gt(0.5).float()
    return (rows + cols) % 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--noise", type=float, default=0.6)
    args = parser.parse_args()
    torch.manual_seed(0)
    net = Denoiser()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for step in range(args.steps):
        clean = images(16)
        loss = nn.functional.mse_loss(net(clean + args.noise * torch.randn_like(clean)), clean)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print("step", step, "mse", round(loss.item(), 4))
