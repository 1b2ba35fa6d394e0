"""`overfit`: models that learn a few examples by heart, and models that cannot."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics

from .case import cases

SECONDS = 60


def trial(build, loss=nn.functional.cross_entropy, data=None, rate=1e-2):
    def run():
        torch.manual_seed(0)
        model = build()
        x, y = classes() if data is None else data()
        loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        result = diagnostics.overfit(model, loader, loss, optimizer, seconds=SECONDS)
        return "" if result.ok else str(result)

    return run


def classes():
    x = torch.randn(160, 8)
    return x, (x @ torch.randn(8, 3)).argmax(1)


def numbers():
    x = torch.randn(160, 8)
    return x, (x.square() @ torch.rand(8))[:, None]


def flat_numbers():
    x, y = numbers()
    return x, y.squeeze(1)


def sequences():
    x = torch.randn(160, 6, 4)
    return x, (x[:, 0, 0] > 0).long()


def contradictions():
    x = torch.randn(8, 8).repeat_interleave(2, 0)
    return x, torch.arange(16) % 2


def perceptron(outputs=3):
    return nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, outputs))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 32, batch_first=True), nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0].mean(1))


class Detached(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 64), nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.body(x)).detach().requires_grad_()


class Blind(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = perceptron()

    def forward(self, x):
        return self.net(x * 0)


CASES = [
    *cases(
        {
            "perceptron": trial(perceptron),
            "with dropout and layer norm": trial(
                lambda: nn.Sequential(
                    nn.Linear(8, 64), nn.LayerNorm(64), nn.GELU(), nn.Dropout(0.2), nn.Linear(64, 3)
                )
            ),
            "regression": trial(lambda: perceptron(1), nn.functional.mse_loss, numbers),
            "recurrent": trial(Recurrent, data=sequences),
            "one output and a sigmoid in the loss": trial(
                lambda: perceptron(1),
                nn.functional.binary_cross_entropy_with_logits,
                lambda: (lambda x, y: (x, (y == 0).float()[:, None]))(*classes()),
            ),
        },
        {
            "output detached": (trial(Detached), "no-gradient"),
            "input multiplied by 0": (trial(Blind), "the inputs do not reach the prediction"),
            "one input with two labels": (trial(perceptron, data=contradictions), "contradict each other"),
            "too few outputs": (trial(lambda: perceptron(2)), "labels-out-of-range"),
            "column minus row": (
                trial(lambda: perceptron(1), nn.functional.mse_loss, flat_numbers),
                "broadcast-loss",
            ),
            "constant weights": (trial(lambda: perceptron().requires_grad_(False)), "no-gradient"),
        },
    )
]
