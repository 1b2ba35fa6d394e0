"""What a training step costs on the simulated device, against the same step on the CPU it runs on.

$ python tests/benchmarks/device_cost.py
"""

import os
import statistics
import sys
import time

import torch
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from bugs import lab
from bugs.lab.device import backend

BOUND = 3.0
RUNS = 9
BATCH_SIZE, LENGTH, VOCABULARY = 16, 64, 3000
CONFIG = DistilBertConfig(vocab_size=VOCABULARY, dim=128, hidden_dim=512, n_layers=4, n_heads=4, num_labels=3)


def training(device):
    """Return a function that takes one step and returns how many operations were queued when all was launched."""
    torch.manual_seed(0)
    model = DistilBertForSequenceClassification(CONFIG).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    batch = {
        "input_ids": torch.randint(VOCABULARY, (BATCH_SIZE, LENGTH)).to(device),
        "attention_mask": torch.ones(BATCH_SIZE, LENGTH, dtype=torch.long).to(device),
        "labels": torch.randint(3, (BATCH_SIZE,)).to(device),
    }

    def step():
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queued = 0 if device.type == "cpu" else backend.pending()
        loss.item()
        return queued

    return step


def main():
    os.environ["ZOO_DEVICE"] = "simulated"
    steps = {device: training(device) for device in (torch.device("cpu"), lab.device(launch_blocking=False))}
    times = {device: [] for device in steps}
    queued = []
    for run in range(RUNS + 1):
        for device, step in steps.items():  # side by side, so that a busy machine slows both alike
            started = time.perf_counter()
            waiting = step()
            took = time.perf_counter() - started
            if run:  # the first is not measured: it plans every operation once
                times[device].append(took)
                queued += [waiting] if device.type != "cpu" else []
    here, there = (statistics.median(measured) for measured in times.values())
    ratio = there / here
    launched = len(backend.timeline().operations) // (RUNS + 1)
    print(
        f"a step on the simulated device / on the CPU = {ratio:.2f} (at most {BOUND}): "
        f"{1000 * there:.0f} ms of {1000 * here:.0f} ms"
    )
    print(
        f"queued when the host had launched the step's {launched} operations: {statistics.median(queued):.0f} "
        f"({min(queued)} to {max(queued)}; more than none)"
    )
    return 0 if ratio <= BOUND and min(queued) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
