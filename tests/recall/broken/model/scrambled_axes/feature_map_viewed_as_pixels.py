"""Feature maps (B, C, H, W) are viewed as (B, H*W, C) without a permute, as are the class scores of the pixels.

After https://github.com/fawazsammani/knowing-when-to-look-adaptive-attention/issues/6
and https://github.com/liuxuexun/RandLA-Net-Pytorch-New/issues/20
"""

# names: scrambled-axes
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
CLASSES, SIZE = 4, 16
colour = torch.randn(CLASSES, 3)


def scenes(n):
    labels = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    for k in range(n):
        for c in range(1, CLASSES):
            top, left = torch.randint(0, SIZE - 5, (2,)).tolist()
            labels[k, top : top + 5, left : left + 5] = c
    images = colour[labels].permute(0, 3, 1, 2) + 0.3 * torch.randn(n, 3, SIZE, SIZE)
    return TensorDataset(images, labels)


class FCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()
        )
        self.score = nn.Conv2d(16, CLASSES, 1)

    def forward(self, x):
        return self.score(self.encoder(x))


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model = model
        self.train_loader, self.val_loader = train_loader, val_loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.loss_fn = nn.CrossEntropyLoss()

    def _flat(self, outputs, labels):
        outputs = outputs.view(-1, CLASSES)
        return outputs, labels.view(-1)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            running = 0.0
            for images, labels in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(*self._flat(self.model(images), labels))
                loss.backward()
                self.optimizer.step()
                running += loss.item()
            print(f"epoch {epoch + 1} train loss {running / len(self.train_loader):.4f} acc {self.evaluate():.3f}")

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = count = 0
        for images, labels in self.val_loader:
            outputs, labels = self._flat(self.model(images), labels)
            right += (outputs.argmax(1) == labels).sum().item()
            count += labels.numel()
        return right / count


Trainer(FCN(), DataLoader(scenes(320), 16, shuffle=True), DataLoader(scenes(64), 16)).fit(8)
