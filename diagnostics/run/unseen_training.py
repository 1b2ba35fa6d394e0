"""What a report says where no training was seen."""

from __future__ import annotations

import dataclasses
import os

from diagnostics.report.contents import StageResult
from diagnostics.text.join import count_of, duration

BUSY_S = 2.0  # of processor time in child processes: to import PyTorch takes as long
NOTHING_TRAINED = StageResult(
    "training",
    "not judged",
    "none found: no Trainer.train, no Keras fit, and no PyTorch optimizer that stepped with a model",
)


def nothing_trained(backward_passes: int, in_others: float) -> StageResult:
    """Say what was seen where no training was.

    Args:
        backward_passes: of PyTorch, that the script has made.
        in_others: seconds that its child processes have computed.
    """
    seen = []
    if backward_passes:
        seen.append(
            f"backward() was called {count_of(backward_passes, 'time')}, and no PyTorch optimizer stepped with "
            "a model: weights that a script updates by hand, or in a function compiled by torch.compile, are "
            "not watched, and nothing here says that they learn"
        )
    if in_others >= BUSY_S:
        seen.append(
            f"none was seen in this process; the processes that it started computed for {duration(in_others)}, "
            "and what trains in them is not watched: run diagnose on the script that they run, or train in this "
            "process; processes that train together are started by torchrun or accelerate, with -m diagnostics "
            "run before the script, or by torch.multiprocessing.spawn"
        )
    return dataclasses.replace(NOTHING_TRAINED, detail="; ".join(seen)) if seen else NOTHING_TRAINED


def short_trainings(count: int) -> StageResult:
    """Say how many trainings were not watched, because many were before and they were short."""
    from diagnostics.collectors.pytorch.discover.optimizers import MAX_MODELS, SHORT

    detail = (
        f"not watched: of models after the first {MAX_MODELS}, only trainings of more than {SHORT} steps are; "
        "run the script with fewer models to have them watched"
    )
    return StageResult(f"{count_of(count, 'short training')}", "not judged", detail)


def seconds_of_children() -> float:
    """Return the processor time of the child processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system
