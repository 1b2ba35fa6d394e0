"""Finds random generators that a loader copies into its workers. Code is read and never run; nothing is drawn.

PyTorch seeds `random`, `torch` and NumPy's global generator in each worker differently. A generator that the
dataset holds itself is copied with it, state and all, so that every worker draws the same numbers.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import random
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from diagnostics.collectors.isolation.harmless_code import codes, is_library
from diagnostics.collectors.isolation.rng import METHODS, is_generator, objects_within
from diagnostics.facts.data import HeldGenerator, WorkerFacts

KINDS = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)

DRAWS = frozenset(
    name
    for kind in KINDS[:3]
    for name in dir(kind)
    if not name.startswith("_")
    and name not in ("seed", "spawn", "bit_generator", "getstate", "get_state")
    and name not in ("setstate", "set_state")
)
"""Methods of a generator that draw."""

RESEEDS = frozenset(
    (
        *("get_worker_info", "seed", "initial_seed", "manual_seed", "spawn", "jumped", "SeedSequence", "setstate"),
        *("set_state", "default_rng", "RandomState", "Random", "Generator", "worker_id"),
    )
)
"""Names that speak for a generator of its own in each worker, or for each row."""

# What an initialisation of workers uses that seeds global generators and no others.
GLOBAL_SEEDING = frozenset(
    (
        *("np", "numpy", "random", "torch", "seed", "manual_seed", "initial_seed", "get_state", "os", "getpid"),
        *("time", "cuda", "manual_seed_all", "print", "int"),
    )
)
MODULES = {"numpy.random": {"np", "numpy"}, "random": {"random"}}
SEEDS_ALIKE = frozenset(("np", "numpy", "random", "torch", "seed", "manual_seed"))
MOST_FUNCTIONS = 64  # that one method calls
FRAMEWORKS = (
    "transformers",
    "lightning",
    "pytorch_lightning",
    "accelerate",
    "fastai",
)  # seed the global ones only


def worker_facts(loader: Any) -> WorkerFacts | None:
    """Describe the workers of a loader; None if it has none, or how they are initialised cannot be told."""
    if (
        not isinstance(loader, DataLoader)
        or not loader.num_workers
        or not _seeds_globals_only(loader.worker_init_fn)
    ):
        return None
    roots = loader.dataset, loader.collate_fn
    facts = facts_of(loader.num_workers, loader.persistent_workers, *roots)
    return dataclasses.replace(facts, same_seed=_same_seed(loader.worker_init_fn, *roots))


def facts_of(workers: int, persistent: bool, *roots: Any) -> WorkerFacts:
    """Describe workers into which `roots` are copied, and whose global generators alone are seeded."""
    return WorkerFacts(workers, bool(persistent), tuple(dict.fromkeys(_held(*roots))))


def _seeds_globals_only(function: Any) -> bool:
    """Whether a `worker_init_fn` leaves alone what a dataset holds."""
    if isinstance(function, functools.partial):
        function = function.func
    if function is None or str(getattr(function, "__module__", "")).partition(".")[0] in FRAMEWORKS:
        return True
    if not isinstance(function, FunctionType):
        return False
    names = {name for code in codes(function.__code__) for name in code.co_names}
    return names - _numbers(function).keys() <= GLOBAL_SEEDING and not function.__closure__


def _numbers(function: FunctionType) -> dict[str, int]:
    """Return the whole numbers among the globals that a function uses."""
    return {name: one for name in _names(function) if type(one := function.__globals__.get(name)) is int}


def _same_seed(function: Any, *roots: Any) -> str:
    """Return the global generator that rows are drawn from, and that has one seed in all workers; else empty."""
    if not isinstance(function, FunctionType) or function.__closure__ or is_library(function):
        return ""
    code = function.__code__
    numbers = [*_numbers(function).values(), *(one for one in code.co_consts if type(one) is int)]
    reads_its_number = any("LOAD_FAST" in step.opname for step in dis.get_instructions(code))
    if not numbers or reads_its_number or len(list(codes(code))) > 1:
        return ""
    if not _names(function) - _numbers(function).keys() <= SEEDS_ALIKE or "seed" not in code.co_names:
        return ""
    seeded = {generator for generator, names in MODULES.items() if names & _globals(function)}
    for value in objects_within(*roots):
        for _, drawing in () if is_generator(value) else _functions(value):
            if _names(drawing) & DRAWS and not _names(drawing) & RESEEDS:
                drawn = [one for one in MODULES if one in seeded and MODULES[one] & _globals(drawing)]
                if drawn:
                    return drawn[0]
    return ""


def _globals(function: FunctionType) -> set[str]:
    """Return the names that a function reads as globals, not as attributes: not the `random` of `np.random`."""
    steps = (step for code in codes(function.__code__) for step in dis.get_instructions(code))
    return {str(step.argval) for step in steps if step.opname == "LOAD_GLOBAL"}


def _held(*roots: Any) -> Iterator[HeldGenerator]:
    """Yield the generators that rows are made with."""
    for value in objects_within(*roots):
        if not is_generator(value):
            yield from _of(value)


def _of(value: Any) -> Iterator[HeldGenerator]:
    """Yield the generators among the attributes of an object, and the globals that it uses."""
    functions = dict(_functions(value))
    for name, held in _attributes(value).items():
        if not _is_seeded_once(held) or _is_renewed(type(value), name):
            continue
        drawing = next((where for where, function in functions.items() if _draws(function, name)), None)
        if drawing is not None:
            yield HeldGenerator(_kind(held), type(value).__name__, name, drawing)
    for where, function in functions.items():
        for name, held in _outer(function).items():
            if _is_seeded_once(held) and _draws(function, name):
                yield HeldGenerator(_kind(held), "", name, where)


def _is_seeded_once(value: Any) -> bool:
    return (
        is_generator(value) and not isinstance(value, random.SystemRandom) and value is not torch.default_generator
    )


def _functions(value: Any) -> Iterator[tuple[str, FunctionType]]:
    """Yield the functions of the script's that run when rows pass through `value`, each with its name."""
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType):
        yield from _with_called(value, value.__qualname__.rpartition("<locals>.")[2])
        return
    waiting = list(METHODS)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        function = getattr(type(value), name, None)
        if name in seen or not isinstance(function, FunctionType):
            continue
        seen.add(name)
        yield from _with_called(function, f"{type(value).__name__}.{name}")
        waiting += [called for code in codes(function.__code__) for called in code.co_names]


def _with_called(function: FunctionType, where: str) -> Iterator[tuple[str, FunctionType]]:
    """Yield a function, and those of the script's that it calls by their global names."""
    waiting, seen = [(where, function)], set[int]()
    while waiting and len(seen) < MOST_FUNCTIONS:
        where, function = waiting.pop(0)
        if id(function) in seen or is_library(function):
            continue
        seen.add(id(function))
        yield where, function
        called = [other for other in _outer(function).values() if isinstance(other, FunctionType)]
        waiting += [(other.__name__, other) for other in called]


def _outer(function: FunctionType) -> dict[str, Any]:
    """Return the globals and the variables of enclosing functions that a function uses, by name."""
    used = {name: function.__globals__.get(name) for code in codes(function.__code__) for name in code.co_names}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            used[name] = cell.cell_contents
        except ValueError:  # a variable that was not assigned yet
            continue
    return used


def _draws(function: FunctionType, name: str) -> bool:
    """Whether a function draws from what has this name, or hands it on, and does nothing that may reseed it."""
    names = _names(function)
    called = [other for other in _outer(function).values() if isinstance(other, FunctionType)]
    for other in called:
        names |= _names(other)
    constants = {part for code in codes(function.__code__) for part in code.co_consts if isinstance(part, tuple)}
    passes_on = any("generator" in part for part in constants)  # torch.rand(..., generator=self.rng)
    return name in names and bool(names & DRAWS or passes_on) and not names & RESEEDS


def _names(function: FunctionType) -> set[str]:
    return {name for code in codes(function.__code__) for name in (*code.co_names, *code.co_freevars)}


def _is_renewed(kind: type, name: str) -> bool:
    """Whether a method other than the first one sets an attribute, or looks at which worker it is in."""
    for base in kind.__mro__:
        for called, function in vars(base).items():
            function = getattr(function, "fget", function)
            if called == "__init__" or not isinstance(function, FunctionType):
                continue
            for code in codes(function.__code__):
                if RESEEDS.intersection(code.co_names) or any(
                    step.opname == "STORE_ATTR" and step.argval == name for step in dis.get_instructions(code)
                ):
                    return True
    return False


def _attributes(value: Any) -> dict[str, Any]:
    try:
        return dict(vars(value))
    except Exception:  # none, or a `__dict__` of its own making
        return {}


def _kind(generator: Any) -> str:
    module = type(generator).__module__
    for base in KINDS:
        if isinstance(generator, base):
            module = {"Generator": "numpy.random", "RandomState": "numpy.random", "Random": "random"}[
                base.__name__
            ]
            module = "torch" if base is torch.Generator else module
            return f"{module}.{base.__name__}"
    return f"{module}.{type(generator).__name__}"
