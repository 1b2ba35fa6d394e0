"""A small training loop under the eyes of the PyTorch probe, for the tests of what it sees."""

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher

INF = float("inf")


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))


def batch(step, rows=16):
    generator = torch.Generator().manual_seed(step)
    inputs = torch.randn(rows, 8, generator=generator)
    return inputs, inputs[:, :3].argmax(1)


def run(model, steps, *, optimizer=None, every=7, deferred=None, change=None, loss_of=None, data=batch, **options):
    """Train, let `change(step, model, optimizer)` interfere before each step, and return the watcher, closed."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.05)
    watch = TorchWatcher(model, [optimizer], every, deferred)
    for step in range(steps):
        inputs, labels = data(step)
        if change is not None:
            change(step, model, optimizer)
        optimizer.zero_grad(**options)
        output = model(inputs)
        loss = loss_of(output) if loss_of else nn.functional.cross_entropy(output, labels)
        loss.backward()
        optimizer.step()
        watch.step(loss)
    watch.close()
    assert watch.faults == {}
    return watch
