"""Ten classes with label smoothing: the loss can never reach zero, and should not.

$ python tests/healthy/pytorch/label_smoothing.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 20, 10
EPOCHS = 8


def points(rows, seed):
    """Return features (rows, 20) and labels (rows,)."""
    centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return centres[labels] + torch.randn(rows, FEATURES, generator=generator), labels


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, CLASSES))
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(label_smoothing=0.1), torch.optim.Adam(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    features, labels = points(512, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model(features)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
