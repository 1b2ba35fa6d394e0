"""A fixed batch over time: runs whose predictions come right, and runs in which they do not."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import diagnostics

from .case import cases

STEPS, NAMES = 200, ("round", "square", "flat")


def trained(build=None, rate=1e-2, held=None, shuffled=False, decode=None, inputs=None):
    """Train with a fixed batch watched; say what the report finds, or that the fixed batch never came right."""

    def run():
        torch.manual_seed(0)
        x = torch.randn(256, 8)
        y = (x @ torch.randn(8, 3)).argmax(1)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)) if build is None else build()
        parameters = model.parameters() if held is None else held(model)
        optimizer = torch.optim.Adam(parameters, lr=rate)
        shown = x[:8] if inputs is None else inputs
        batch = diagnostics.FixedBatch(shown, y[:8], cross_entropy, decode, NAMES.__getitem__)
        with diagnostics.watch(model, optimizer, every=10, fixed_batch=batch, histograms=True) as watch:
            for _ in range(STEPS):
                chosen = torch.randint(256, (32,))
                labels = y[torch.randint(256, (32,))] if shuffled else y[chosen]
                optimizer.zero_grad()
                loss = cross_entropy(model(x[chosen]), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
        return told(watch.report())

    return run


def told(report):
    found = [finding.rule for finding in report.findings]
    if report.fixed_batch is None:
        return str(report)  # with the reason
    first, last = report.fixed_batch.looks[0], report.fixed_batch.looks[-1]
    if first.predictions == last.predictions and first.loss == last.loss:
        found.append("the predictions never change")
    elif sum(map(bool, last.right)) < 6:
        found.append("the predictions do not come right")
    return " ".join(found)


class Detached(nn.Linear):
    def forward(self, x):
        return super().forward(x).detach().requires_grad_()


def fails(_):
    raise ValueError("no such word")


CASES = [
    *cases(
        {
            "perceptron": trained(),
            "batch norm": trained(
                lambda: nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
            ),
            "dropout": trained(
                lambda: nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3))
            ),
            "linear": trained(lambda: nn.Linear(8, 3), rate=5e-2),
            "decoded inputs": trained(decode=lambda row: f"{float(row.sum()):.1f}"),
        },
        {
            "rate of 0": (trained(rate=0.0), "the predictions never change"),
            "head detached": (trained(lambda: Detached(8, 3)), "the predictions never change"),
            "labels of other rows": (trained(shuffled=True), "the predictions do not come right"),
            "rate far too high": (trained(rate=30.0), "learning-rate-too-high"),
            "batch that does not fit the model": (trained(inputs=torch.randn(8, 5)), "the model raised"),
            "decoder that fails": (trained(decode=fails), "no such word"),
        },
    )
]
