"""Mixed precision: the forward pass in bfloat16 under autocast, weights and optimizer in float32.

$ python tests/healthy/pytorch/autocast_bfloat16.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 16, 4
EPOCHS = 10


def points(rows, seed):
    """Return features (rows, 16) and labels (rows,): one centre a class, and noise around it."""
    centres = 1.5 * torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return centres[labels] + torch.randn(rows, FEATURES, generator=generator), labels


def build():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(FEATURES, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, CLASSES)
    )
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, loader, loss_fn, optimizer):
    inputs, labels = points(512, seed=2)

    @torch.no_grad()
    def evaluate():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(inputs)
        return loss_fn(logits.float(), labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = loss_fn(model(batch), target)
            loss.backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
