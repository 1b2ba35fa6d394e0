"""A trainer class with switches for mixed precision and clipping; with both on, the order is wrong."""
# names: mixed-precision-misuse

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, lr, amp=True, grad_clip=0.5):
        self.model = model
        self.optim = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", enabled=amp, init_scale=1024.0)
        self.grad_clip = grad_clip

    def update(self, loss):
        self.optim.zero_grad()
        self.scaler.scale(loss).backward()
        if self.grad_clip:
            clip_grad_norm_(self.model.parameters(), self.grad_clip)
        self.scaler.step(self.optim)
        self.scaler.update()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in loader:
                loss = nn.functional.mse_loss(self.model(x).squeeze(-1), y)
                self.update(loss)
                total += loss.item()
            print(f"epoch {epoch} loss {total / len(loader):.4f}")


torch.manual_seed(1)
x = torch.randn(640, 10)
y = x[:, 0] - 2 * x[:, 3] + 0.1 * torch.randn(640)
net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
Trainer(net, lr=0.05).fit(DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True), epochs=5)
