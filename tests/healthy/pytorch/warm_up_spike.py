"""AdamW at a rate that warms up so fast that the loss spikes, and then goes down with the rate.

$ python tests/healthy/pytorch/warm_up_spike.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, CLASSES = 16, 4
EPOCHS, WARM_UP = 10, 30  # steps
HIGHEST = 3e-2  # learning rate


def points(rows, seed):
    """Return features (rows, 16) and labels (rows,): one centre a class, and noise around it."""
    centres = 0.7 * torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    return centres[labels] + torch.randn(rows, FEATURES, generator=generator), labels


def build():
    torch.manual_seed(0)
    layers = [nn.Linear(FEATURES, 128), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(128, 128), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(128, CLASSES))
    loader = DataLoader(TensorDataset(*points(1024, seed=1)), batch_size=32, shuffle=True)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, loader, loss_fn, optimizer):
    inputs, labels = points(512, seed=2)
    steps = EPOCHS * len(loader)
    for group in optimizer.param_groups:
        group["lr"] = HIGHEST
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM_UP, (1 - step / steps) ** 2)
    )

    @torch.no_grad()
    def evaluate():
        logits = model(inputs)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    highest = 0.0
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(batch), target)
            loss.backward()
            optimizer.step()
            schedule.step()
            highest = max(highest, loss.item())
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "highest": highest, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
