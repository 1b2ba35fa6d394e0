"""What it costs to examine a Trainer, against training it for 100 steps.

$ python tests/benchmarks/examine_cost.py
"""

import contextlib
import copy
import runpy
import statistics
import sys
import time
from pathlib import Path

import torch
import transformers

import diagnostics

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "solutions" / "04_wrong_label_count" / "train.py"
BOUND = 1.0
STEPS, RUNS = 100, 3


class Stop(BaseException):
    """Ends the script where its training would begin."""


def trainer_of(script):
    """Run a script up to `trainer.train()` and return its Trainer."""
    found = []

    def train(trainer, *_arguments, **_options):
        found.append(trainer)
        raise Stop

    original = transformers.Trainer.train
    transformers.Trainer.train = train
    try:
        with contextlib.suppress(Stop):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        transformers.Trainer.train = original
    return found[0]


def main():
    sys.path.insert(0, str(ROOT))
    torch.set_num_threads(1)  # two tasks that wait for each other's threads would measure the waiting
    trainer = trainer_of(SCRIPT)
    trainer.args.max_steps = STEPS
    trainer.remove_callback(transformers.trainer_callback.ProgressCallback)
    untrained = copy.deepcopy(trainer.model.state_dict())

    def examine():
        report = diagnostics.examine(trainer)
        if not report.ok or report.faults:
            sys.exit(f"the solution is not clean:\n{report}")

    def train():
        trainer.train()

    times = {examine: [], train: []}
    for run in range(RUNS + 1):
        for task in times:  # side by side, so that a busy machine slows both alike
            trainer.model.load_state_dict(untrained)
            trainer.optimizer = trainer.lr_scheduler = None
            started = time.perf_counter()
            task()
            if run:  # the first is not measured: it loads what both need
                times[task].append(time.perf_counter() - started)
    examining, training = statistics.median(times[examine]), statistics.median(times[train])
    ratio = examining / training
    print(
        f"examine(trainer) / {STEPS} training steps = {ratio:.2f} (at most {BOUND}): {examining:.1f} s of "
        f"{training:.1f} s"
    )
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
