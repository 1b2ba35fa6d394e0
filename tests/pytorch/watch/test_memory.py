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
    from diagnostics.collectors.system.host_memory import resident_memory

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
                print(int(resident_memory()), flush=True)
    report = watch.report()
    assert report.title == "watched 15,000 steps of Linear"
    assert report.faults == ()
    """
)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_memory_is_constant_over_fifteen_thousand_steps():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    first, *_, last = (int(line) for line in done.stdout.split())
    assert last - first < 2 * 2**20, done.stdout  # the allocator's own coming and going


EMBEDDING = textwrap.dedent(
    """
    import sys

    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.EmbeddingBag(400_000, 250, sparse=sys.argv[1] == "sparse"), nn.Linear(250, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        tokens = torch.randint(400_000, (32, 16))
        loss = nn.functional.cross_entropy(model(tokens), torch.randint(4, (32,)))
        loss.backward()
        optimizer.step()
    from diagnostics.collectors.system.host_memory import peak_memory
    print("peak", peak_memory()[0])
    """
)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
@pytest.mark.parametrize("gradients", ["sparse", "dense"])
@pytest.mark.exhaustive
def test_peak_stays_near_that_of_python_with_400_mb_of_weights(tmp_path, gradients):
    script = tmp_path / "train.py"
    script.write_text(EMBEDDING)
    peaks = {}
    for way in ([], ["-m", "diagnostics", "run"]):
        done = subprocess.run(
            [sys.executable, *way, str(script), gradients], capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        peaks[bool(way)] = int(done.stdout.split("peak ")[1].split()[0])
        assert not way or "a sample of the weights" in " ".join(done.stderr.split())
    assert peaks[True] <= 1.2 * peaks[False], peaks
