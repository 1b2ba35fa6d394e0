"""`compare`: checks a vectorised function against a loop."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diagnostics.collectors.checks.calls import Arguments, Called, Caller, NumpyCaller, framework_of
from diagnostics.collectors.checks.cases import Axes, cases, read_axes
from diagnostics.collectors.checks.differences import (
    PRECISION_KEPT,
    difference_of,
    differs,
    dtype_of,
    numbers,
    pattern_of,
    rounding_of,
    tolerance,
)
from diagnostics.collectors.shared.arrays import name_of
from diagnostics.errors import InvalidInput, ends_at_the_caller, typed_message, what
from diagnostics.facts.array import Array
from diagnostics.facts.checks import ComparedCase, Difference

from .comparison import Comparison

__tracebackhide__ = ends_at_the_caller

SECONDS = 10.0  # after which no further case is begun: loops are slow
# Rounding is 2e-9 as large in float64 as in float32, and smaller still against half precision; a bug stays as it
# is.
SHRINKS = 1e-4
KINK = 1e-2  # of the inputs' root mean square: how far from them gradients are compared again


def compare(
    fast: Callable[..., Any],
    slow: Callable[..., Any],
    inputs: Any,
    *,
    check_gradients: bool = True,
    check_dtype: bool = True,
    vary: bool = True,
    framework: str | None = None,
) -> Comparison:
    """Compare a vectorised function with the same function in loops: values, gradients and dtypes.

        def test_pairwise_distances():
            result = diagnostics.compare(pairwise, pairwise_in_loops, ["rows features", "others features"])
            result.assert_same()

    Both functions are called with copies of the same inputs and the same random numbers: first with the given
    inputs, then with inputs of other sizes, such as one row, an odd number of rows, or a different size for every
    axis. Values may differ by the rounding of their dtype. Unless it is large, a larger difference that vanishes
    in float64 also counts as rounding.

    Args:
        fast: the function to check, from PyTorch, NumPy, TensorFlow or Keras.
        slow: the trusted function, which takes the same arguments.
        inputs: a list of arguments, a dict of keyword arguments, or a single argument. Each argument is a tensor
            or an array; its axes by name, ``"batch time features"`` for random float32 and ``"batch time < 100"``
            for integers from 0 to 99, where the same name means the same size; or anything else, which is passed
            on unchanged.
        check_gradients: whether to compare the gradients with respect to all float inputs; NumPy has none.
        check_dtype: whether the dtypes must be the same.
        vary: whether to try sizes and values other than the given ones; if not, named axes have one size each.
        framework: torch, tensorflow or numpy, for named axes; None to detect what the functions use.

    Returns:
        What was compared, and where the results first differ; `assert_same()` raises if they do.

    Raises:
        InvalidInput: an argument is wrong, or `slow` fails on the first inputs.
    """
    given = _arguments(fast, slow, inputs)
    name = _checked_framework(framework) or framework_of(given.values, fast, slow)
    caller = _caller_for(name)
    done: list[ComparedCase] = []
    left_out = 0
    started = time.monotonic()
    with caller.kept(fast, slow):
        named = any(isinstance(value, Axes) for value in given.values)
        for case, arguments in cases(given, caller):
            if done and (not vary or time.monotonic() - started > SECONDS):
                left_out += vary
                continue
            comparing = _Compared(caller, fast, slow, arguments, check_gradients, check_dtype, not done or named)
            done.append(comparing.case(case))
            if len(done) == 1 and comparing.slow_error is not None:
                raise InvalidInput(_slow_failed(slow, case, comparing.slow_error)) from comparing.slow_error
    names = _named(fast, "fast"), _named(slow, "slow")
    if names[0] == names[1]:
        names = "fast", "slow"
    return Comparison(names[0], names[1], tuple(done), left_out)


class _Compared:
    """Compares one call of both functions.

    Args:
        declared: whether both must accept these sizes; otherwise a function that raises is left alone.
    """

    def __init__(
        self,
        caller: Caller,
        fast: Callable[..., Any],
        slow: Callable[..., Any],
        given: Arguments,
        gradients: bool,
        dtypes: bool,
        declared: bool,
    ) -> None:
        self._caller, self._functions, self._given = caller, (fast, slow), given
        self._gradients, self._dtypes, self._declared = gradients, dtypes, declared
        self.slow_error: Exception | None = None
        arrays = [array for value in given.values if (array := numbers(value)) is not None and array.size]
        self._terms = max((array.size for array in arrays), default=1)
        floats = [array[np.isfinite(array)] for array in arrays if array.dtype.kind in "fc"]
        self._scale = max((float(np.sqrt(np.mean(np.abs(f) ** 2))) for f in floats if f.size), default=1.0)
        self._notes: list[str] = []
        self._wide: tuple[Called, Called] | None = None

    def case(self, case: ComparedCase) -> ComparedCase:
        """Call both, and compare what they returned."""
        fast, slow = self._call(self._given, self._gradients)
        self.slow_error = slow.error
        if fast.error is not None or slow.error is not None:
            raised = slow.error or fast.error
            assert raised is not None
            if slow.error is not None or not self._declared:  # what is trusted does not take these sizes
                return replace(case, skipped=typed_message(raised).partition("\n")[0])
            return replace(case, difference=Difference("the result", "raised", typed_message(raised), "a result"))
        found = self._difference(fast, slow)
        if found is not None and found.kind in ("values", "shape") and self._caller.name == "torch":
            watched = self._caller.call(self._functions[0], self._given, False, True)
            found = replace(found, operation=watched.operation)
        return replace(case, difference=found, notes=tuple(self._notes))

    def _call(self, given: Arguments, gradients: bool) -> tuple[Called, Called]:
        fast, slow = (self._caller.call(function, given, gradients, False) for function in self._functions)
        return fast, slow

    def _difference(self, fast: Called, slow: Called) -> Difference | None:
        if fast.outputs.keys() != slow.outputs.keys():
            return Difference("the result", "structure", _structure(fast.outputs), _structure(slow.outputs))
        for name, expected in slow.outputs.items():
            part = f"the result[{name!r}]" if name else "the result"
            if (found := self._between(part, fast.outputs[name], expected, "outputs", name)) is not None:
                return found
        for name in fast.changed:
            if name not in slow.changed:
                return Difference(f"the argument {name}", "changed input", "written to", "left as it was")
        return self._gradient_difference(fast, slow)

    def _gradient_difference(self, fast: Called, slow: Called) -> Difference | None:
        if self._gradients and slow.gradients and all(one is None for one in slow.gradients.values()):
            if any(one is not None for one in fast.gradients.values()):
                self._notes.append("gradients were not compared: the result of slow has none")
            return None
        for name, expected in slow.gradients.items():
            got = fast.gradients.get(name)
            part = f"the gradient of {name}"
            if expected is None or got is None:
                one, other = (numbers(value) for value in (got, expected))
                if any(array is not None and np.any(array) for array in (one, other)):  # no gradient equals zeros
                    said = ["none" if value is None else "there is one" for value in (got, expected)]
                    return Difference(part, "no gradient", said[0], said[1])
                continue
            found = self._between(part, got, expected, "gradients", name)
            if found is not None and not self._only_at_kinks(found, name):
                return found
        return None

    def _only_at_kinks(self, found: Difference, name: str) -> bool:
        """Whether finite gradients are the same for inputs a little aside, as those of a maximum of equal values.

        Both are right there, so this is a note.
        """
        if found.kind != "values" or found.largest is None:
            return False
        rng = np.random.default_rng(0)
        aside = [self._caller.moved(value, rng, KINK * (self._scale or 1.0)) for value in self._given.values]
        pair = [called.gradients.get(name) for called in self._call(self._given.having(aside), True)]
        one, other = numbers(pair[0]), numbers(pair[1])
        if one is None or other is None or one.shape != other.shape:
            return False
        rounding = rounding_of(*map(dtype_of, pair))
        if differs(one, other, tolerance(other, rounding, self._terms, self._scale)).any():
            return False
        self._notes.append(
            f"{found.part} differs for the inputs given, and not beside them: they are equal values of a maximum, "
            "or another kink, where both gradients are right"
        )
        return True

    def _between(self, part: str, got: Any, expected: Any, kept_in: str, name: str) -> Difference | None:
        mine, theirs = numbers(got), numbers(expected)
        if mine is None or theirs is None:
            same = mine is theirs and type(got) is type(expected) and bool(got == expected)
            return None if same else Difference(part, "structure", what(got), what(expected))
        dtypes = dtype_of(got), dtype_of(expected)
        if mine.shape != theirs.shape:
            allowed = tolerance(theirs, rounding_of(*dtypes), self._terms, self._scale)
            limit = float(allowed.max()) if allowed.size else 0.0
            pattern = pattern_of(mine, theirs, lambda a, b: a.shape == b.shape and not differs(a, b, limit).any())
            return Difference(part, "shape", mine.shape, theirs.shape, shape=theirs.shape, pattern=pattern)
        if self._dtypes and all(dtypes) and dtypes[0] != dtypes[1]:
            return Difference(part, "dtype", *dtypes)
        rounding, dtype = rounding_of(*dtypes), max(dtypes, key=rounding_of)
        scale = self._scale if dtype in ("float64", "complex128") else 0.0
        allowed = tolerance(theirs, rounding, self._terms, scale)
        found = difference_of(part, mine, theirs, allowed, self._terms, dtype)
        if found is None or found.largest is None or scale or not rounding:
            return found
        return self._in_float64(found, theirs, rounding, kept_in, name)

    def _in_float64(
        self, found: Difference, expected: Array, rounding: float, kept_in: str, name: str
    ) -> Difference | None:
        """Keep a difference that float64 shows, too; one that vanishes there is rounding, or lost precision."""
        if self._wide is None:
            wide = self._given.having([self._caller.widened(value) for value in self._given.values])
            self._wide = self._call(wide, self._gradients)
        pair = [getattr(called, kept_in).get(name) for called in self._wide]
        if any(dtype_of(value) not in ("float64", "complex128") for value in pair):
            return found
        one, other = numbers(pair[0]), numbers(pair[1])
        if one is None or other is None or one.shape != other.shape or one.shape != expected.shape:
            return found
        with np.errstate(invalid="ignore"):
            left = np.nan_to_num(np.abs(one - other), nan=0.0).max(initial=0.0)
        if differs(np.isfinite(one), np.isfinite(other), 0.0).any() or left > SHRINKS * (found.largest or 0.0):
            return found
        finite = np.abs(expected[np.isfinite(expected)])
        of_inputs = float(tolerance(np.zeros(1), rounding, self._terms, self._scale)[0])
        reach = max(rounding**PRECISION_KEPT * float(finite.max(initial=0.0)), of_inputs)
        if found.largest is not None and found.largest > reach:
            return replace(found, kind="precision")
        self._notes.append(
            f"{found.part} differs by up to {found.largest:.2g}: rounding, for in float64 both are the same"
        )
        return None


def _arguments(fast: Any, slow: Any, inputs: Any) -> Arguments:
    for name, function in (("fast", fast), ("slow", slow)):
        if not callable(function):
            raise InvalidInput(
                f"compare() was given {what(function)} as {name}. It takes two functions: the vectorised one, and "
                "one in plain loops that takes the same arguments."
            )
    keywords: list[str | None]
    if isinstance(inputs, Mapping):
        keywords, values = [str(name) for name in inputs], list(inputs.values())
    elif isinstance(inputs, list | tuple):
        keywords, values = [None] * len(inputs), list(inputs)
    else:
        keywords, values = [None], [inputs]
    if not values:
        raise InvalidInput(
            "compare() was given no inputs. Pass a list of arguments, or a dict of keyword arguments: tensors, "
            'arrays, or names of axes such as "batch time features".'
        )
    names = _argument_names(slow, keywords)
    read = [
        read_axes(value, f"The input {name} of compare()") if isinstance(value, str) else value
        for name, value in zip(names, values, strict=True)
    ]
    arguments = Arguments(names, read, keywords)
    for name, function in (("fast", fast), ("slow", slow)):
        _check_takes(name, function, arguments)
    return arguments


def _argument_names(function: Any, keywords: Sequence[str | None]) -> list[str]:
    try:
        parameters = [
            p.name for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_POSITIONAL
        ]
    except (TypeError, ValueError):
        parameters = []
    return [
        keyword or (parameters[place] if place < len(parameters) else f"argument {place}")
        for place, keyword in enumerate(keywords)
    ]


def _check_takes(name: str, function: Any, given: Arguments) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C: it will say so itself
        return
    try:
        given.call(signature.bind, given.values)
    except TypeError as error:
        raise InvalidInput(
            f"compare() cannot call {name}, {_named(function, name)}{signature}, with the inputs given: {error}. "
            "inputs is a list of arguments, or a dict of keyword arguments, that both functions take."
        ) from None


def _checked_framework(name: Any) -> str | None:
    if name not in (None, "torch", "tensorflow", "numpy"):
        raise InvalidInput(
            f"compare(framework={name!r}): expected torch, tensorflow or numpy; Keras on PyTorch is torch."
        )
    return name if name is None else str(name)


def _slow_failed(slow: Any, case: ComparedCase, error: Exception) -> str:
    return (
        f"compare() trusts {_named(slow, 'slow')}, and that raised on the first inputs ({case.name}): "
        f"{typed_message(error)}. Correct the slow function, or pass inputs that it takes."
    )


def _named(function: Any, otherwise: str) -> str:
    name = name_of(function) or otherwise
    return otherwise if name in ("<lambda>", "partial", "function") else name


def _structure(parts: Mapping[str, Any]) -> str:
    if list(parts) == [""]:
        return "one value"
    return f"{len(parts)} values: {', '.join(parts)}" if parts else "nothing"


def _caller_for(name: str) -> Caller:
    """Return what calls functions of a framework: torch, tensorflow or numpy. It is imported here."""
    if name == "torch":
        from diagnostics.collectors.pytorch.checks.call import TorchCaller

        return TorchCaller()
    if name == "tensorflow":
        from diagnostics.collectors.keras.checks.call import TensorFlowCaller

        return TensorFlowCaller()
    return NumpyCaller()
