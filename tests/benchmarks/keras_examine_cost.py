"""What it costs to examine a Keras model, against its first 100 steps of `fit`, compilation included in both.

$ python tests/benchmarks/keras_examine_cost.py
"""

import contextlib
import os
import runpy
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras

import diagnostics

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "solutions" / "05_nan_loss" / "train.py"
BOUND = 1.0
STEPS, RUNS = 100, 3


class Stop(BaseException):
    """Ends the script where its training would begin."""


def prepared(script):
    """Run a script up to `model.fit` and return its model, compiled and not yet traced, and its data."""
    found = []

    def fit(model, x, **_options):
        found.append((model, x))
        raise Stop

    original = keras.Model.fit
    keras.Model.fit = fit
    try:
        with contextlib.suppress(Stop):
            runpy.run_path(str(script), run_name="__main__")
    finally:
        keras.Model.fit = original
    return found[0]


def examine(model, dataset):
    report = diagnostics.examine(model, dataset)
    if not report.ok or report.faults:
        sys.exit(f"the solution is not clean:\n{report}")


def fit(model, dataset):
    model.fit(dataset.take(STEPS), verbose=0)


def main():
    sys.path.insert(0, str(ROOT))
    times = {examine: [], fit: []}
    for run in range(RUNS + 1):
        for task in times:  # side by side, so that a busy machine slows both alike
            model, dataset = prepared(SCRIPT)
            started = time.perf_counter()
            task(model, dataset)
            if run:  # the first is not measured: it loads what both need
                times[task].append(time.perf_counter() - started)
    examining, training = statistics.median(times[examine]), statistics.median(times[fit])
    ratio = examining / training
    print(
        f"examine(model, dataset) / first {STEPS} steps of fit = {ratio:.2f} (at most {BOUND}): "
        f"{examining:.1f} s of {training:.1f} s"
    )
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
