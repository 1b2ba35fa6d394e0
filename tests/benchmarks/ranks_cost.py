"""What `diagnose run` costs a step of two ranks that share a model, against plain `python`.

The ranks note weights, batches and loaders for each other. Timed are the steps, without the start: the clock of
the slower rank, which is what a user waits, and beside it the processors' time of both, which a busy machine
changes less: on such a one only that ratio says anything. The peak of the memory may grow no more over the steps
than without the library, but for what the notes hold, which does not depend on the number of steps.

$ python tests/benchmarks/ranks_cost.py
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BOUND = 1.05
MOST_MIB = 16  # of a rank over all steps: some values of 32 parameters at steps 1, 2, 4, ..., and 64 iterations
PAIRS = 5
STEPS = 600
LIMIT_S = 600
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""\
import resource
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
images, labels = torch.randn(2048, 1, 28, 28), torch.randint(10, (2048,))
images[torch.arange(2048), 0, labels * 2, :] += 1
dataset = TensorDataset(images, labels)
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
model = DistributedDataParallel(
    nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 10),
    )
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = 0
for epoch in range(1 + {STEPS} // len(loader)):
    sampler.set_epoch(epoch)
    for batch, target in loader:
        if steps == 5:  # the first make buffers, and are examined once
            dist.barrier()
            began, used = time.perf_counter(), time.process_time()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        steps += 1
dist.barrier()
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
print(time.perf_counter() - began, time.process_time() - used, grown / 1024)
dist.destroy_process_group()
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def measured(folder, observed):
    """Run both ranks.

    Returns:
        Seconds of the clock, of the slower; seconds of the processors, of both; MiB by which a peak grew.
    """
    command = [sys.executable, *(["-m", "diagnostics", "run", "--quiet"] if observed else []), "train.py"]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    place |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        told = [rank.communicate(timeout=LIMIT_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    for rank, (_, errors) in zip(ranks, told, strict=True):
        if rank.returncode:
            sys.exit(f"{' '.join(command)} ended with {rank.returncode}:\n{errors}")
    clocks, processors, grown = zip(*(map(float, out.split()) for out, _ in told), strict=True)
    return max(clocks), sum(processors), max(grown)


def main():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(PROGRAM)
        # Each goes first in turn: a machine that grows slower or faster then favours neither.
        pairs = []
        for turn in range(PAIRS):
            order = (False, True) if turn % 2 == 0 else (True, False)
            took = {observed: measured(folder, observed) for observed in order}
            pairs.append((took[False], took[True]))
    ratios = sorted(observed[0] / plain[0] for plain, observed in pairs)
    computed = sorted(observed[1] / plain[1] for plain, observed in pairs)
    ratio, of_processors = statistics.median(ratios), statistics.median(computed)
    alone = statistics.median(plain[0] for plain, _ in pairs)
    more = statistics.median(observed[2] - plain[2] for plain, observed in pairs)
    print(
        f"two ranks: diagnose run / python = {ratio:.3f} of a step (at most {BOUND}; pairs from {ratios[0]:.3f} "
        f"to {ratios[-1]:.3f}); CPU time {of_processors:.3f} ({computed[0]:.3f} to {computed[-1]:.3f}); "
        f"{1000 * alone / STEPS:.1f} ms a step alone; {more:+.1f} MiB (at most {MOST_MIB})"
    )
    return 0 if ratio <= BOUND and more <= MOST_MIB else 1


if __name__ == "__main__":
    sys.exit(main())
