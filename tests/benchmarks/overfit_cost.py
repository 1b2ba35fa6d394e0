"""What `overfit` costs, against as many plain steps on as many examples.

$ python tests/benchmarks/overfit_cost.py
"""

import copy
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import diagnostics

ROOT = Path(__file__).resolve().parents[2]
BOUND = 4.0  # small models: what is kept of each step weighs most
PAIRS = 5


def program(name):
    """Build a healthy program: model, loader, loss and optimizer."""
    sys.path.insert(0, str(ROOT))
    from tests.support.healthy import PROGRAMS, load

    return load(next(path for path in PROGRAMS if path.stem == name)).build()


def plain(model, loader, loss_fn, optimizer, counts):
    """Take the same numbers of steps on as many examples, by a loop that keeps nothing."""
    inputs, labels = next(iter(DataLoader(loader.dataset, batch_size=loader.batch_size)))
    for examples, steps in counts:
        twin = copy.deepcopy(model).train()
        made = type(optimizer)(twin.parameters(), **optimizer.defaults)
        for _ in range(steps):
            made.zero_grad()
            loss_fn(twin(inputs[:examples]), labels[:examples]).backward()
            made.step()


def measure(name):
    """Return the ratios, one a pair, and the numbers of steps."""
    arguments, ratios = program(name), []
    result = diagnostics.overfit(*arguments)  # not measured: it loads what both need
    if not result.ok:
        sys.exit(f"{name} is healthy, and overfit says:\n{result}")
    counts = [(trial.examples, len(run.losses)) for trial in result.trials for run in trial.runs]
    for pair in range(PAIRS):
        times = {}
        tasks = {
            "overfit": lambda: diagnostics.overfit(*arguments),
            "plain": lambda: plain(*arguments, counts),
        }
        for task in (
            tasks if pair % 2 else reversed(tasks)
        ):  # side by side, so that a busy machine slows both alike
            started = time.perf_counter()
            tasks[task]()
            times[task] = time.perf_counter() - started
        ratios.append(times["overfit"] / times["plain"])
    return ratios, counts


def main():
    torch.set_num_threads(1)  # two tasks that wait for each other's threads would measure the waiting
    failed = False
    for name in ("mlp_classifier", "cnn_batch_norm"):
        ratios, counts = measure(name)
        middle = statistics.median(ratios)
        failed |= middle > BOUND
        print(
            f"overfit({name}) / {sum(steps for _, steps in counts)} plain steps on "
            f"{', '.join(str(examples) for examples, _ in counts)} examples = {middle:.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}, {PAIRS} pairs; at most {BOUND})"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
