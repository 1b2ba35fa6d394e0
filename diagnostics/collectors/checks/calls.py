"""Calls a function on copies of its arguments, with random states kept, and keeps what it returned."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, Protocol

import numpy as np

from diagnostics.collectors.isolation.harmless_code import codes
from diagnostics.collectors.isolation.rng import generators_within, objects_within
from diagnostics.collectors.shared.arrays import fields, flat, is_tensor
from diagnostics.collectors.shared.reread import seed_globals

SEED = 0  # before each call, so that both functions draw the same


@dataclass
class Arguments:
    """What a function is called with.

    Attributes:
        names: of the values, as messages call them.
        values: tensors, arrays, or anything else, which is handed on as it is.
        keywords: the keyword of each; None for a positional argument.
    """

    names: Sequence[str]
    values: Sequence[Any]
    keywords: Sequence[str | None]

    def call(self, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        """Call a function with other values in the same places."""
        pairs = list(zip(self.keywords, values, strict=True))
        positional = [value for keyword, value in pairs if keyword is None]
        return function(*positional, **{keyword: value for keyword, value in pairs if keyword is not None})

    def having(self, values: Sequence[Any]) -> Arguments:
        """Return the same with other values."""
        return Arguments(self.names, values, self.keywords)


@dataclass
class Called:
    """What a call gave.

    Attributes:
        outputs: by name: empty for a single result.
        gradients: of a fixed weighted sum of all results, by the name of the argument; None where there is none.
        changed: names of arguments that the function wrote to.
        error: what it raised.
        operation: an operation that expanded both of its operands, as a sentence; empty if none did.
    """

    outputs: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    error: Exception | None = None
    operation: str = ""


class Caller(Protocol):
    """Calls functions of one framework."""

    name: str

    def of_array(self, array: Any) -> Any:
        """Convert an array of NumPy."""

    def widened(self, value: Any) -> Any:
        """Return floats as float64, and anything else as it is."""

    def moved(self, value: Any, rng: np.random.Generator, by: float) -> Any:
        """Add normal noise of this size to floats; return anything else as it is."""

    def kept(self, *functions: Any) -> AbstractContextManager[None]:
        """Restore random states, and what modules among the functions hold."""

    def call(self, function: Callable[..., Any], given: Arguments, gradients: bool, watched: bool) -> Called:
        """Call on copies; `watched` looks for operations that expand both operands."""


def named_parts(outputs: Any) -> dict[str, Any]:
    """Name the parts of a result; a single one has an empty name."""
    if isinstance(outputs, Mapping) or (isinstance(outputs, list | tuple) and not _is_numbers(outputs)):
        return flat(fields(outputs))
    return {"": outputs}


def _is_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float | list) for value in values)


class NumpyCaller:
    """Calls functions of NumPy, which have no gradients."""

    name = "numpy"

    def of_array(self, array: Any) -> Any:
        """See `Caller`."""
        return array

    def widened(self, value: Any) -> Any:
        """See `Caller`."""
        return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value

    def moved(self, value: Any, rng: np.random.Generator, by: float) -> Any:
        """See `Caller`."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return (value + by * rng.standard_normal(value.shape)).astype(value.dtype)
        return value

    @contextmanager
    def kept(self, *functions: Any) -> Iterator[None]:
        """See `Caller`."""
        states = random.getstate(), np.random.get_state()
        own = [(one, one.state()) for one in generators_within(*functions)]
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
            for one, state in own:
                one.restore(state)

    def call(self, function: Callable[..., Any], given: Arguments, gradients: bool, watched: bool) -> Called:
        """See `Caller`."""
        copies = [np.array(value) if isinstance(value, np.ndarray) else value for value in given.values]
        seed_globals(SEED)
        try:
            with np.errstate(all="ignore"):
                outputs = given.call(function, copies)
        except Exception as error:
            return Called(error=error)
        changed = [
            name
            for name, before, after in zip(given.names, given.values, copies, strict=True)
            if isinstance(before, np.ndarray) and before.dtype.kind != "O" and not _equal(before, after)
        ]
        return Called(named_parts(outputs), changed=tuple(changed))


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def framework_of(values: Sequence[Any], *functions: Any) -> str:
    """Return the framework of some arguments; that which the functions use where there is none among them."""
    for value in values:
        if (name := framework_of_value(value)) is not None:
            return name
    named = [name for function in functions for name in _modules_used(function)]
    for name in ("torch", "tensorflow", "keras", "numpy"):
        if name in named:
            return "tensorflow" if name == "keras" else name
    return "torch" if "torch" in sys.modules else "numpy"


def framework_of_value(value: Any) -> str | None:
    """Name the framework of a tensor or an array; None for anything else."""
    if isinstance(value, np.ndarray):
        return "numpy"
    if is_tensor(value):
        return "torch"
    top = type(value).__module__.partition(".")[0]
    if top in ("tensorflow", "keras") and hasattr(value, "dtype"):
        return "tensorflow"
    return None


def names_in(function: FunctionType) -> set[str]:
    """Return the names that the code of a function uses, and that of comprehensions within."""
    return {name for code in codes(function.__code__) for name in code.co_names}


def _modules_used(function: Any) -> Iterator[str]:
    """Yield the frameworks whose modules the code of a function names, and that of an object's own class."""
    for value in objects_within(function):
        yield type(value).__module__.partition(".")[0]
        if isinstance(value, FunctionType):
            for name in names_in(value):
                used = value.__globals__.get(name)
                module = used.__name__ if isinstance(used, ModuleType) else getattr(used, "__module__", "")
                yield str(module).partition(".")[0]


@contextmanager
def all_random_states_kept(*roots: Any) -> Iterator[None]:
    """Restore on leaving the global generators of Python, NumPy and all frameworks in use, and those in roots."""
    with ExitStack() as stack:
        stack.enter_context(NumpyCaller().kept(*roots))
        if "torch" in sys.modules:
            from diagnostics.collectors.pytorch.state import random_states_kept

            stack.enter_context(random_states_kept(*roots))
        if "tensorflow" in sys.modules:
            from diagnostics.collectors.keras.state import tensorflow_seed_kept

            stack.enter_context(tensorflow_seed_kept(*roots))
        yield


def seed_all(number: int) -> None:
    """Seed the global generators of Python and NumPy, and of the frameworks in use."""
    seed_globals(number)
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.random.set_seed(number)
