"""`GradientChecks`: every parameter's gradient, accumulation, and gradients through time."""

import torch
from torch import nn
from torch.nn import functional as F

import diagnostics

from .case import cases, failed

CHECKS = diagnostics.GradientChecks()


def every(build, loss=F.cross_entropy, **options):
    def run():
        torch.manual_seed(0)
        batch = torch.randn(16, 8), torch.randint(3, (16,))
        return failed(lambda: CHECKS.every_parameter(build(), batch, loss, **options))

    return run


def accumulated(build, loss=F.cross_entropy, **options):
    def run():
        torch.manual_seed(0)
        batch = torch.randn(16, 8), torch.randint(3, (16,))
        return failed(lambda: CHECKS.accumulation(build(), batch, loss, **options))

    return run


def through_time(build, lengths):
    def run():
        torch.manual_seed(0)
        return failed(lambda: CHECKS.through_time(build(), "2 time 8", lengths=lengths))

    return run


def perceptron():
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3))


class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pooler, self.head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


class CutBody(Pooler):
    def forward(self, x):
        return self.head(self.pooler(self.body(x).detach()))


class Dead(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        nn.init.constant_(self[0].bias, -100.0)


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 32, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0]


class Fading(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(8, 32, batch_first=True)
        nn.init.eye_(self.rnn.weight_hh_l0)
        with torch.no_grad():
            self.rnn.weight_hh_l0.mul_(0.3)

    def forward(self, x):
        return self.rnn(x)[0]


def added_up(model, micro_batches):
    for inputs, target in micro_batches:
        F.cross_entropy(model(inputs), target).backward()


def zeroed_between(model, micro_batches):
    for inputs, target in micro_batches:
        model.zero_grad()
        (F.cross_entropy(model(inputs), target) / len(micro_batches)).backward()


def averaged(model, micro_batches):
    for inputs, target in micro_batches:
        (F.cross_entropy(model(inputs), target) / len(micro_batches)).backward()


CASES = [
    *cases(
        {
            "perceptron": every(perceptron),
            "pooler named as unused": every(Pooler, except_for=["pooler.*"]),
            "accumulated mean": accumulated(perceptron),
            "own accumulation": accumulated(perceptron, accumulate=averaged),
            "batch norm on its running statistics": accumulated(
                lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)),
                batch_statistics=False,
            ),
            "GRU over 24 steps": through_time(Gru, (8, 24)),
        },
        {
            "pooler that nothing uses": (every(Pooler), "pooler"),
            "body cut by detach": (every(CutBody), "body"),
            "units that are all off": (every(Dead), "0"),
            "losses added up": (accumulated(perceptron, accumulate=added_up), "4 times too large"),
            "zeroed between micro-batches": (
                accumulated(perceptron, accumulate=zeroed_between),
                "the last micro-batch alone",
            ),
            "batch norm over micro-batches": (
                accumulated(lambda: nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3))),
                "Batch norm is the reason",
            ),
            "recurrent net that forgets": (through_time(Fading, (8, 64)), "falls to a tenth every"),
        },
    )
]
