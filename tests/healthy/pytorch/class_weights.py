"""Imbalanced classes, 19 to 1, with class weights in the loss that make up for it.

$ python tests/healthy/pytorch/class_weights.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, RARE = 10, 0.05
EPOCHS = 10


def screening(rows, seed):
    """Return features (rows, 10) and labels (rows,): one row in twenty is of class 1, shifted by 1.2 a feature."""
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.rand(rows, generator=generator) < RARE).long()
    return torch.randn(rows, FEATURES, generator=generator) + 1.2 * labels[:, None], labels


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 2))
    features, labels = screening(2048, seed=1)
    loader = DataLoader(TensorDataset(features, labels), batch_size=64, shuffle=True)
    weight = len(labels) / (2 * labels.bincount())
    return model, loader, nn.CrossEntropyLoss(weight=weight), torch.optim.Adam(model.parameters(), lr=1e-3)


def train(model, loader, loss_fn, optimizer):
    features, labels = screening(2048, seed=2)

    @torch.no_grad()
    def evaluate():
        logits = model(features)
        recall = [(logits.argmax(1) == label)[labels == label].float().mean().item() for label in (0, 1)]
        return loss_fn(logits, labels).item(), sum(recall) / 2

    before, _ = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, balanced_accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "balanced_accuracy": balanced_accuracy}


if __name__ == "__main__":
    print(train(*build()))
