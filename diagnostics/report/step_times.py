"""Says how long the parts of a training step take, and what to try first if one of them takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from diagnostics.facts.step_times import PARTS, BatchSource, StepTimes

WAITING: Final = 0.3
"""A share of the loader from which on there is advice: without it, an epoch would be a third shorter, or more."""

SMALL: Final = 0.005  # a share that would be shown as 0%
MOST_WORKERS: Final = 4  # that are tried first


def times_as_dict(times: StepTimes) -> dict[str, Any]:
    """Return the times in the layout of the JSON report."""
    return {
        "steps": times.steps,
        "skipped": times.skipped,
        "seconds_per_step": round(times.total / times.steps, 6),
        "shares": {part: round(times.share(part), 4) for part in PARTS if part in times.seconds},
        "asynchronous": times.asynchronous,
        "advice": advice(times),
    }


def times_from_dict(written: Mapping[str, Any]) -> StepTimes:
    """Return the times that `times_as_dict` has written, as far as it has."""
    total = written["seconds_per_step"] * written["steps"]
    return StepTimes(
        steps=written["steps"],
        skipped=written["skipped"],
        seconds={part: share * total for part, share in written["shares"].items()},
        asynchronous=written["asynchronous"],
        advice=tuple(written["advice"]),
    )


def summary(times: StepTimes) -> str:
    """Return the mean of a step and the share of each part, in a sentence."""
    mean = f"{_milliseconds(times.total / times.steps)} per step"
    shares = [f"{name} {times.share(part):.0%}" for part, name in PARTS.items() if times.share(part) >= SMALL]
    return f"{mean} ({times.steps:,} steps, without the first {times.skipped}): {', '.join(shares)}."


def advice(times: StepTimes) -> list[str]:
    """Return sentences: what the numbers mean here, and what to try first."""
    if times.advice:
        return list(times.advice)
    keras, said = "step" in times.seconds, []
    if times.asynchronous:
        said.append("This is the time of the host; the device's is in the part that waits for it.")
    if times.share("loader") >= WAITING:
        said += _about_loader(times, times.source or BatchSource())
    if times.share("rest") >= WAITING and not times.asynchronous:
        if keras:
            said.append("The rest is mostly callbacks: do their work once per epoch.")
        elif "loader" in times.seconds:
            said.append("The rest is your own code: print, log and call .item() less often.")
        else:
            said.append("The rest is your own code: it makes batches, logs and calls .item().")
    return [*said, f"{'keras.callbacks.TensorBoard(profile_batch=…)' if keras else 'torch.profiler'} shows more."]


def _about_loader(times: StepTimes, source: BatchSource) -> list[str]:
    waits, workers = "Training waits for its batches", f"workers={min(MOST_WORKERS, max(times.cores, 2))}"
    items = "" if source.items is None else f"{source.items.function} ({source.items.file}:{source.items.line})"
    within = f", in {items}" if items else ""
    pinned = " and pin_memory=True" if times.asynchronous and source.pinned is False else ""
    match source.kind:
        case "DataLoader" if not source.workers:
            batch = f"one takes {_milliseconds(times.seconds['loader'] / max(times.batches, 1))}"
            collated = " and the collate function" if items else ""
            return [f"{waits}: {batch}{within}{collated}.", f"Try num_{workers}{pinned} first; it is 0."]
        case "DataLoader":
            persistent = " with persistent_workers=True" if source.persistent is False else ""
            save = f"or save what {items or 'the dataset'} computes"
            return [f"{waits} despite num_workers={source.workers}. Try more{persistent}{pinned}, {save}."]
        case "PyDataset":
            return [f"{waits}{within}. Try {workers}, use_multiprocessing=True in the PyDataset first."]
        case "tf.data" if not source.prefetches:
            return [f"{waits}. End the pipeline with .prefetch(tf.data.AUTOTUNE) first."]
        case "tf.data":
            cached = "" if source.caches else ", then .cache() after work that is the same in each epoch"
            return [f"{waits}. Try num_parallel_calls=tf.data.AUTOTUNE in .map(){cached}."]
    return [f"{waits}. Prepare them ahead, in another process, or once for all epochs."]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
