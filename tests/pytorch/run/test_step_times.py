"""Where the time of a step goes: scripts that wait for one thing, and their shares with wide margins."""

import time
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from diagnostics.run.observer import ScriptObserver

STEPS, BATCH, ITEM_S = 30, 8, 0.006  # more than a second of steps


class Slow(Dataset):
    """Each item takes a while; a process that sleeps leaves the processor to others."""

    def __init__(self, seconds=ITEM_S):
        self.seconds = seconds

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.full((64,), float(index % 5)), index % 3


def times_of(script):
    run = ScriptObserver()
    try:
        script()
    finally:
        run.close()
    assert run.faults == []
    return run.watched()[-1].time


def train(loader, model=None, between=lambda: None, epochs=1):
    model = model or nn.Linear(64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            between()
    return model


@pytest.mark.parametrize("workers", [0, 2])
def test_a_slow_dataset_shows_as_waiting(workers):
    times = times_of(lambda: train(DataLoader(Slow(ITEM_S * (workers or 1)), BATCH, num_workers=workers)))
    assert (times.steps, times.skipped, times.asynchronous) == (STEPS - 5, 5, False)
    assert times.share("loader") > 0.5
    assert sum(times.share(part) for part in times.seconds) == pytest.approx(1)
    assert times.source.workers == workers
    assert (times.source.items.function, times.source.items.line) == (
        "Slow.__getitem__",
        Slow.__getitem__.__code__.co_firstlineno,
    )
    if not workers:  # asleep, whatever the machine does meanwhile
        assert times.seconds["loader"] / times.batches >= BATCH * ITEM_S


def test_a_large_model_shows_as_forward_and_backward():
    wide = nn.Sequential(nn.Linear(64, 2048), *(nn.Linear(2048, 2048) for _ in range(4)), nn.Linear(2048, 3))
    rows = [(torch.randn(64), i % 3) for i in range(STEPS * 32)]
    times = times_of(lambda: train(DataLoader(rows, 32), wide, epochs=2))
    assert times.share("loader") < 0.2
    assert times.share("forward") + times.share("backward") > 0.5


def test_sleep_after_the_step_is_the_rest():
    times = times_of(lambda: train(DataLoader(Slow(0), BATCH), between=lambda: time.sleep(0.05)))
    assert times.share("rest") > 0.5


def test_an_evaluation_does_not_count():
    class Asleep(nn.Linear):
        def forward(self, inputs):
            time.sleep(0.01 if self.training else 0.1)
            return super().forward(inputs)

    def script():
        model, rows = Asleep(64, 3), [(torch.randn(64), i % 3) for i in range(24)]
        for _ in range(12):
            train(DataLoader(Slow(0.0007), 80), model)
            model.eval()
            for inputs, _ in DataLoader(rows, 8):
                with torch.no_grad():
                    model(inputs)
            model.train()

    times = times_of(script)
    assert times.steps == 31
    assert times.seconds["forward"] / times.steps < 0.1


def test_passes_of_an_accumulated_step_count_once():
    def script():
        model = nn.Linear(64, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for number, (inputs, labels) in enumerate(DataLoader(Slow(0.01), 4)):
            (nn.functional.cross_entropy(model(inputs), labels) / 2).backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()

    times = times_of(script)
    assert (times.steps, times.batches) == (STEPS - 5, 2 * (STEPS - 5))
    assert times.share("loader") > 0.5


def test_a_closure_is_told_apart_from_its_optimizer():
    class Asleep(nn.Linear):
        def forward(self, inputs):
            time.sleep(0.05)
            return super().forward(inputs)

    def script():
        model = Asleep(64, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def closure(inputs):
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            return loss

        for inputs, _ in DataLoader(Slow(0), BATCH):
            optimizer.step(partial(closure, inputs))

    times = times_of(script)
    assert times.share("forward") > 0.5 > times.share("optimizer")


def test_silent_about_a_short_run():
    assert times_of(lambda: train(DataLoader(Slow(), 12))) is None  # 20 steps
    assert times_of(lambda: train(DataLoader(Slow(0), BATCH))) is None  # a few milliseconds
