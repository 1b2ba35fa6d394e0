"""What it costs to watch large models: CPU time by the step, and the peak of the memory of a whole program.

Ratios of watched to bare, taken in alternating pairs; a machine that others use changes them little.

$ python tests/benchmarks/large_models.py
"""

import re
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import torch
from torch import nn

import diagnostics

ROOT = Path(__file__).resolve().parents[2]
MEMORY_BOUND = 1.2


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.norm = nn.LayerNorm(width)

    def forward(self, inputs):
        hidden = inputs
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        return self.norm(inputs + hidden)


def many_modules():
    """Build 1,502 modules."""
    model = nn.Sequential(*[Block(32) for _ in range(250)], nn.Linear(32, 4))
    inputs, labels = torch.randn(16, 32), torch.randint(4, (16,))
    return model, lambda: nn.functional.cross_entropy(model(inputs), labels)


def many_parameters():
    """Build 67.4 million parameters in few tensors, for which a batch is little work."""
    layers = [nn.Linear(64, 4096), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Linear(4096, 4096), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(4096, 4))
    inputs, labels = torch.randn(32, 64), torch.randint(4, (32,))
    return model, lambda: nn.functional.cross_entropy(model(inputs), labels)


# model, steps, steps in a row of one way, the most that `watch` may cost in all of them together
TASKS = ((many_modules, 128, 8, 1.10), (many_parameters, 40, 4, 1.05))

EMBEDDING = """
    import sys
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.EmbeddingBag(400_000, 250, sparse=sys.argv[1] == "sparse"), nn.Linear(250, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(24):
        optimizer.zero_grad()
        tokens = torch.randint(400_000, (32, 16))
        loss = nn.functional.cross_entropy(model(tokens), torch.randint(4, (32,)))
        loss.backward()
        optimizer.step()
    with open("/proc/self/status") as status:
        print(status.read(), file=sys.stderr)
    """


def loop(build, watched):
    torch.manual_seed(0)
    model, loss_of = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    watch = diagnostics.watch(model, optimizer) if watched else None

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        if watch is not None:
            watch.step(loss)

    return step, watch


def measure(build, steps, row):
    """Return seconds of CPU time of the first `steps` steps, by way a list over rows."""
    loops = [loop(build, watched) for watched in (False, True)]
    times = [[], []]
    for turn in range(steps // row):
        for way in (0, 1) if turn % 2 else (1, 0):
            started = time.process_time()
            for _ in range(row):
                loops[way][0]()
            times[way].append(time.process_time() - started)
    loops[1][1].close()
    assert loops[1][1].report().faults == ()
    return times


def peak(script, ways, gradients):
    done = subprocess.run([sys.executable, *ways, script, gradients], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        sys.exit(done.stderr)
    return int(re.search(r"VmHWM:\s+(\d+) kB", done.stderr)[1]) / 1024


def main():
    torch.set_num_threads(1)
    held = True
    for build, steps, row, bound in TASKS:
        bare, watched = measure(build, steps, row)
        ratio = sum(watched) / sum(bare)
        pairs = sorted(a / b for a, b in zip(watched, bare, strict=True))
        held = held and ratio <= bound
        print(
            f"{build.__name__}: watch / bare = {ratio:.3f} in the first {steps} steps (at most {bound}; "
            f"rows of {row} from {pairs[0]:.3f} to {pairs[-1]:.3f}, median {statistics.median(pairs):.3f}); "
            f"a bare step takes {sum(bare) / steps * 1e3:.0f} ms",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(textwrap.dedent(EMBEDDING))
        for gradients in ("sparse", "dense"):
            plain, observed = (peak(script, ways, gradients) for ways in ((), ("-m", "diagnostics", "run")))
            held = held and observed <= MEMORY_BOUND * plain
            print(
                f"a 400 MB embedding, {gradients} gradients: the peak grows from {plain:.0f} to {observed:.0f} "
                f"MB, {observed / plain:.2f} (at most {MEMORY_BOUND})",
                flush=True,
            )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
