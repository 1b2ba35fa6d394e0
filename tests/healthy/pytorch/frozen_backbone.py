"""A frozen backbone, its batch norm kept in evaluation mode, and a head that alone learns.

$ python tests/healthy/pytorch/frozen_backbone.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, WIDTH, CLASSES = 20, 128, 3
EPOCHS = 8


def points(rows, seed):
    """Return features (rows, 20) and labels (rows,): which of three features is the largest."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(seed))
    return features, features[:, :CLASSES].argmax(1)


class Transferred(nn.Module):
    """A backbone that stays as it is, and a new head."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(FEATURES, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU())
        with torch.no_grad():  # its statistics come from earlier training
            self.backbone(points(2048, seed=3)[0])
        self.backbone.requires_grad_(False)
        self.head = nn.Linear(WIDTH, CLASSES)

    def train(self, mode=True):
        """Keep the statistics of the frozen batch norm as they are."""
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, features):
        return self.head(self.backbone(features))


def build():
    torch.manual_seed(0)
    model = Transferred()
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(trainable, lr=5e-3)


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(features)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        model.train()
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
