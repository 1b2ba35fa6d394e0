"""What step times and the first-batch panel of a report add to a step of a small transformer, in CPU time.

Step times cost the same in any loop. So their microseconds are measured in a loop around a single weight, where
nothing else hides them, and compared with a step of the transformer. The panel is made once, in a run of RUN
steps.

$ python tests/benchmarks/step_times_cost.py
"""

import gc
import statistics
import sys
import time

import torch
import transformers
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.discover.step_times import StepTimer
from diagnostics.collectors.shared.batch_view import examined_batch
from diagnostics.facts.pipeline import BatchFacts

BOUND = 0.01
RUN = 100  # steps: a short run
PAIRS, STEPS = 40, 50
BATCH, TOKENS, VOCABULARY = 16, 64, 1000


def single_weight():
    """Return a training whose steps cost next to nothing, and its loader."""
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    loader = DataLoader(TensorDataset(torch.ones(STEPS, 1)), 1)

    def train():
        for (inputs,) in loader:
            optimizer.zero_grad()
            model(inputs).mean().backward()
            optimizer.step()

    return train


def transformer():
    """Return a step of the DistilBERT that watch_overhead.py measures, and its batch."""
    config = transformers.DistilBertConfig(
        vocab_size=VOCABULARY, dim=256, hidden_dim=1024, n_layers=4, n_heads=4, num_labels=3
    )
    model = transformers.DistilBertForSequenceClassification(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids, labels = torch.randint(VOCABULARY, (BATCH, TOKENS)), torch.randint(3, (BATCH,))

    def step():
        optimizer.zero_grad()
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels).loss.backward()
        optimizer.step()

    return step, BatchFacts(BATCH, {"input_ids": ids.numpy()}, labels.numpy(), labels_name="labels")


def seconds(work):
    """Return the CPU time of some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def timed(train):
    """Train with step times; return the CPU time of the training alone."""
    faults = []
    timer = StepTimer(FaultGuard(on_fault=faults.append))
    try:
        return seconds(train)
    finally:
        timer.close()
        assert not faults
        assert timer._clock.steps == STEPS


def main():
    torch.set_num_threads(1)
    gc.disable()
    train, (step, batch) = single_weight(), transformer()
    timed(train), train(), step(), examined_batch(batch, (), shown=True)  # loads what they need
    added = []
    for pair in range(PAIRS):
        with_first = bool(pair % 2)
        first = timed(train) if with_first else seconds(train)
        second = seconds(train) if with_first else timed(train)
        added.append((first - second if with_first else second - first) / STEPS)
    steps = [seconds(step) for _ in range(PAIRS)]
    panels = [seconds(lambda: examined_batch(batch, (), shown=True)) for _ in range(PAIRS)]
    timing, whole, panel = (statistics.median(values) for values in (added, steps, panels))
    low, _, high = (1e6 * value for value in statistics.quantiles(added, n=4))
    share = (timing + panel / RUN) / whole
    print(
        f"step times: {1e6 * timing:.0f} us a step (half of {PAIRS} pairs from {low:.0f} to {high:.0f}); "
        f"first batch: {1e3 * panel:.1f} ms once ({1e3 * min(panels):.1f} to {1e3 * max(panels):.1f})\n"
        f"both, of a transformer's step of {1e3 * whole:.1f} ms in a run of {RUN}: {share:.4f} (at most {BOUND})"
    )
    return 0 if share <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
