"""A run of any length holds the same: its history is full after 2,048 steps, and only thins out from there on."""

import subprocess
import sys
import textwrap

import pytest

RUN = textwrap.dedent(
    """
    import torch
    from torch import nn

    import diagnostics
    from diagnostics.probes.held_memory import process_memory

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    with diagnostics.watch(model, optimizer) as watch:
        for step in range(1, 15_001):
            inputs = torch.randn(8, 4)
            optimizer.zero_grad()
            loss = model(inputs).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
            if step % 3_000 == 0:
                print(int(process_memory()), flush=True)
    report = watch.report()
    assert report.title == "watched 15,000 steps of Linear"
    assert report.faults == ()
    """
)


@pytest.mark.slow
def test_memory_is_constant_over_fifteen_thousand_steps():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    first, *_, last = (int(line) for line in done.stdout.split())
    assert last - first < 2 * 2**20, done.stdout  # the allocator's own coming and going
