"""What `compare`, `baselines` and the checks of tests and notebooks cost, against what they check.

$ python tests/benchmarks/checks_cost.py
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics

PAIRS = 7
CELL = """\
def epoch_{number}(model, loader, optimizer):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    return loss.item()
"""
LOADER, GRADIENTS = diagnostics.LoaderChecks(), diagnostics.GradientChecks()


def attention_in_loops(q, k, v):
    rows = []
    for row in range(q.shape[0]):
        scores = torch.stack([torch.stack([(a * b).sum() for b in k[row]]) for a in q[row]]) / q.shape[-1] ** 0.5
        rows.append(torch.stack([sum(w * x for w, x in zip(s.softmax(0), v[row], strict=True)) for s in scores]))
    return torch.stack(rows)


def ratios(check, plain):
    """Time both in turn, so that a busy machine slows both alike; return the ratio of each pair."""
    found = []
    for pair in range(PAIRS + 1):
        times = []
        for task in (check, plain):
            started = time.perf_counter()
            task()
            times.append(time.perf_counter() - started)
        if pair:  # the first is not measured: it loads what both need
            found.append(times[0] / times[1])
    return found


def cases():
    """Yield a name, a check, what it is compared with in words and as code, and the ratio allowed."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    given = [torch.randn(4, 8, 16) for _ in range(3)]

    def slow():
        leaves = [x.clone().requires_grad_() for x in given]
        attention_in_loops(*leaves).sum().backward()

    yield (
        "compare on given tensors", lambda: diagnostics.compare(
            F.scaled_dot_product_attention, attention_in_loops, given).assert_same(),
        "one call of the loop twin with its gradient", slow, 10,
    )  # fmt: skip

    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    batch = torch.randn(128, 256), torch.randint(0, 10, (128,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    yield "every_parameter", lambda: GRADIENTS.every_parameter(model, batch, F.cross_entropy), "a step", step, 6
    yield "accumulation", lambda: GRADIENTS.accumulation(model, batch, F.cross_entropy), "a step", step, 15

    images = torch.randint(0, 256, (512, 3, 32, 32), dtype=torch.uint8)
    loader = DataLoader(TensorDataset(images, torch.arange(512)), 32, shuffle=True)

    def epoch():
        for _ in loader:
            pass

    yield "same_item_twice", lambda: LOADER.same_item_twice(loader.dataset), "an epoch of 512 images", epoch, 20
    yield "batch_equals_items", lambda: LOADER.batch_equals_items(loader), "an epoch of 512 images", epoch, 20
    workers = DataLoader(loader.dataset, 32, num_workers=2)

    def with_workers():
        for _ in workers:
            pass

    yield (
        "distinct_workers", lambda: LOADER.distinct_workers(workers),
        "an epoch of 512 images with 2 workers", with_workers, 3,
    )  # fmt: skip

    x = torch.randn(2000, 64)
    table = DataLoader(TensorDataset(x, (x @ torch.randn(64, 5)).argmax(1)), 50)

    def ten_epochs():
        for _ in range(10):
            for inputs, labels in table:
                optimizer.zero_grad()
                F.cross_entropy(classifier(inputs), labels).backward()
                optimizer.step()

    classifier = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 5))
    yield "baselines", lambda: diagnostics.baselines(table), "10 epochs on its 2,000 rows", ten_epochs, 2

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.ipynb")
        cells = [nbformat.v4.new_code_cell(CELL.format(number=number)) for number in range(50)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        yield (
            "check_notebook of 50 cells", lambda: diagnostics.check_notebook(path),
            "reading and compiling it",
            lambda: [compile(cell.source, "cell", "exec") for cell in nbformat.read(path, 4).cells], 6,
        )  # fmt: skip


def main():
    good = True
    for name, check, against, plain, bound in cases():
        found = ratios(check, plain)
        median = statistics.median(found)
        good = good and median <= bound
        print(
            f"{name} / {against} = {median:.1f} (at most {bound}; {PAIRS} pairs, {np.min(found):.1f} to "
            f"{np.max(found):.1f})"
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
