"""Reads items in real workers of a loader, and says which random generators they draw from, in which state."""

from __future__ import annotations

import copy
import hashlib
import pickle
import random
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

from diagnostics.collectors.checks.calls import names_in
from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.isolation.rng import OwnGenerator, is_generator, objects_within
from diagnostics.collectors.shared.dataset_rows import is_iterable_only
from diagnostics.facts.checks import WorkerGenerator

SECONDS = 60  # to start the workers and to read one item in each
ADVANCED = 7  # numbers drawn to bring a generator into another state

_at_start: dict[str, Any] = {}  # of the worker that this process is


def worker_generators(loader: DataLoader[Any], workers: int) -> list[WorkerGenerator]:
    """Start workers as the loader would, read the first item in each, and describe their generators.

    The loader's own workers are not used, and its place does not change.

    Raises:
        RuntimeError: a worker ended, or took longer than `SECONDS`.
    """
    options: dict[str, Any] = {
        "num_workers": workers,
        "worker_init_fn": _Start(loader.worker_init_fn, loader.collate_fn),
        "collate_fn": _Looking(loader.collate_fn, loader._auto_collation),
        "multiprocessing_context": loader.multiprocessing_context,
        "generator": torch.Generator().manual_seed(0),
        "timeout": SECONDS,
        "prefetch_factor": 1,
    }
    if is_iterable_only(loader.dataset):
        options["batch_size"] = 1 if loader._auto_collation else None
    elif loader._auto_collation:
        options["batch_sampler"] = [[0]] * workers
    else:
        options |= {"batch_size": None, "sampler": [0] * workers}
    found: list[WorkerGenerator] = []
    with own_run(), own_warnings_ignored():  # PyTorch warns of more workers than cores
        batches = iter(DataLoader(loader.dataset, **options))
        for _ in range(workers):
            found += next(batches, [])
    return found


class _Start:
    """Initialises a worker as the user does, and notes the states of its generators."""

    def __init__(self, own: Callable[[int], None] | None, collate: Any) -> None:
        self._own, self._collate = own, collate

    def __call__(self, worker: int) -> None:
        if self._own is not None:
            self._own(worker)
        info: Any = get_worker_info()
        _at_start.clear()
        _at_start.update({name: own.state() for name, own in generators(info.dataset, self._collate).items()})
        for name, state in _at_start.items():
            if isinstance(state, dict):  # NumPy returns the very dict
                _at_start[name] = copy.deepcopy(state)


class _Looking:
    """Stands in the place of the collator: it has just been handed what was read."""

    def __init__(self, collate: Any, together: bool) -> None:
        self._collate, self._together = collate, together

    def __call__(self, rows: Any) -> list[WorkerGenerator]:
        info: Any = get_worker_info()
        dataset = info.dataset
        self._made(rows)
        held = generators(dataset, self._collate)
        after = {name: _digest(own.state()) for name, own in held.items()}
        found = []
        for name, own in held.items():
            start = _at_start.get(name)
            if start is None:  # it was made while the item was read: in this worker alone
                continue
            drawn = after[name] != _digest(start)
            by_item = drawn and self._state_after(0, dataset, name, start) == after[name]
            alike = by_item and self._state_after(1, dataset, name, start) == after[name]
            own.restore(start)
            first = _draw(own.generator)
            found.append(WorkerGenerator(info.id, name, _digest(start), after[name], drawn, by_item, alike, first))
        return found

    def _made(self, rows: Any) -> None:
        if self._collate is not None:
            self._collate(copy.deepcopy(rows))

    def _state_after(self, place: int, dataset: Any, name: str, start: Any) -> str:
        """Read an item with the generator in another state than at the start."""
        own = generators(dataset, self._collate)[name]  # reading may have put another in its place
        own.restore(start)
        for _ in range(ADVANCED):
            _draw(own.generator)
        if is_iterable_only(dataset):
            row = next(iter(dataset))
        else:
            row = dataset[min(place, len(dataset) - 1)]
            if place >= len(dataset):
                return ""
        self._made([row] if self._together else row)
        return _digest(generators(dataset, self._collate)[name].state())


def generators(*roots: Any) -> dict[str, OwnGenerator]:
    """Name the global generators, and those that are held by `roots`: ``Photos.rng``."""
    found = {
        "random": OwnGenerator(random._inst),
        "numpy.random": OwnGenerator(np.random.mtrand._rand),
        "torch": OwnGenerator(torch.default_generator),
    }
    known = {id(own.generator) for own in found.values()}
    for value in objects_within(*roots):
        for name, held in _held(value):
            if is_generator(held) and not isinstance(held, random.SystemRandom) and id(held) not in known:
                known.add(id(held))
                found[name] = OwnGenerator(held)
    return found


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        for name in names_in(value):
            yield f"the variable {name}", value.__globals__.get(name)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                yield f"the variable {name}", cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return
    if is_generator(value):
        return
    for method in ("__getitem__", "__getitems__", "__iter__", "__call__"):
        function = getattr(type(value), method, None)
        if isinstance(function, FunctionType):
            yield from _held(function)
    try:
        attributes = dict(vars(value))
    except Exception:  # none, or a `__dict__` of its own making
        return
    for name, held in attributes.items():
        yield f"{type(value).__name__}.{name}", held


def _digest(state: Any) -> str:
    if isinstance(state, torch.Tensor):
        state = state.numpy().tobytes()
    return hashlib.sha256(pickle.dumps(state)).hexdigest()[:16]


def _draw(generator: Any) -> float:
    if isinstance(generator, torch.Generator):
        return float(torch.rand((), generator=generator))
    if isinstance(generator, np.random.RandomState):
        return float(generator.random_sample())
    return float(generator.random())
