"""Takes what a script gives to scikit-learn's metrics, as they check their arguments."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

import numpy as np

from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.array import Array
from diagnostics.facts.metrics import OF_CLASSES, OF_NUMBERS, OF_SCORES, MetricCall
from diagnostics.facts.where import Where

MODULE = "sklearn.utils._param_validation"
PLACES = 32  # metrics, each of so many rows, of which a call is kept
MIN_ROWS, MAX_ROWS = 16, 20_000  # rows; of more, every second, third, ... is kept
SERIES = 16  # lines of the script whose first calls are kept
CALLS, BYTES = 256, 2**20  # of one line
MOST_PAIRS = 8  # tensors of pairs that are kept of a call


class Passes(Protocol):
    """The passes of models without gradients.

    Attributes:
        passes: so far.
        steps: of optimizers so far.
    """

    passes: int
    steps: int

    def of_rows(self, rows: int) -> tuple[Array, tuple[int, ...]] | None:
        """Return the latest outputs that have so many rows, and the rows of each pass; None if there are none."""


class MetricCalls:
    """Keeps the calls of a script's own.

    Of calls of one metric with as many rows the last counts: a loop that measures in each epoch begins with a
    model that has yet to learn the size of its answers. The first calls from one line are kept as a series.

    Args:
        attempt: runs the work, and keeps its faults out of the script.
        passes: returns what models returned without gradients; None where that is not observed.
    """

    def __init__(self, attempt: Callable[..., Any], passes: Callable[[], Passes | None] = lambda: None) -> None:
        self._attempt, self._observed = attempt, passes
        self._latest: dict[tuple[str, int], MetricCall] = {}
        self._series: dict[tuple[str, Where], list[MetricCall]] = {}
        self._bytes: dict[tuple[str, Where], int] = {}
        self._passes: dict[tuple[str, Where], int] = {}  # at the latest call

    @property
    def calls(self) -> tuple[MetricCall, ...]:
        """The last call of each metric with as many rows."""
        return tuple(self._latest.values())

    @property
    def series(self) -> tuple[tuple[MetricCall, ...], ...]:
        """The first calls from each line that called more than once."""
        return tuple(tuple(calls) for calls in self._series.values() if len(calls) > 1)

    def called(self, _constraints: Any, params: Any, caller_name: Any, *_others: Any, **_options: Any) -> None:
        """Take the arguments of a call of scikit-learn, before they are checked."""
        if caller_name in OF_NUMBERS or caller_name in OF_SCORES or caller_name in OF_CLASSES:
            self._attempt(self._take, caller_name, params)

    def _take(self, metric: str, params: Mapping[str, Any]) -> None:
        if params.get("sample_weight") is not None:
            return
        truth = _column(params["y_true"])
        answers = _column(params["y_score" if metric in OF_SCORES else "y_pred"])
        if truth is None or answers is None or len(truth) != len(answers) or not len(truth):
            return
        stride = -(-len(truth) // MAX_ROWS)
        where, observed = script_line(), self._observed()
        place = metric, len(truth)
        keeps = len(truth) >= MIN_ROWS and (place in self._latest or len(self._latest) < PLACES)
        if not keeps and where is None:
            return
        call = MetricCall(
            metric,
            truth[::stride].copy(),
            answers[::stride].copy(),
            _average(metric, params),
            *_cut_from(answers),
            whole=stride == 1,
            where=where,
            passes=None if where is None or observed is None else self._since((metric, where), observed.passes),
            step=0 if observed is None else observed.steps,
        )
        if keeps:
            before = self._latest.get(place)
            pairs = _pairs(truth) if before is None and metric in OF_SCORES else getattr(before, "pairs", ())
            self._latest[place] = replace(_with_outputs(call, observed), pairs=pairs)
        if where is not None:
            self._add((metric, where), call)

    def _since(self, line: tuple[str, Where], passes: int) -> int | None:
        """Return the passes since the last call from a line; None if there was none."""
        before = self._passes.get(line)
        self._passes[line] = passes
        return None if before is None else passes - before

    def _add(self, line: tuple[str, Where], call: MetricCall) -> None:
        if line not in self._series and len(self._series) >= SERIES:
            return
        calls = self._series.setdefault(line, [])
        size = self._bytes.get(line, 0) + call.truth.nbytes + call.answers.nbytes
        if len(calls) < CALLS and size <= BYTES:
            calls.append(call)
            self._bytes[line] = size


def _with_outputs(call: MetricCall, observed: Passes | None) -> MetricCall:
    found = observed.of_rows(len(call.truth)) if observed is not None and call.whole else None
    return call if found is None else replace(call, outputs=found[0], batches=found[1])


def _pairs(truth: Array) -> tuple[Array, ...]:
    """Copy the tensors of integers that hold a pair for each row of class 1, wherever the script has them."""
    kind, rows = getattr(sys.modules.get("torch"), "Tensor", None), int((truth == 1).sum())
    if kind is None or not MIN_ROWS <= rows <= MAX_ROWS or not ((truth == 0) | (truth == 1)).all():
        return ()
    shapes = (rows, 2), (2, rows)
    tensors = [one for one in gc.get_objects() if type(one) is kind]
    arrays = (to_array(one) for one in tensors if tuple(one.shape) in shapes and not one.is_floating_point())
    found = (
        one if one.shape == shapes[0] else one.T for one in arrays if one is not None and one.dtype.kind in "iu"
    )
    return tuple(islice(found, MOST_PAIRS))


def _average(metric: str, params: Mapping[str, Any]) -> str | None:
    """Return how a metric averages over classes; None where options that we do not follow change its value."""
    if metric not in OF_CLASSES or metric == "accuracy_score":
        return None
    plain = params.get("labels") is None and params.get("pos_label", 1) == 1
    plain = plain and params.get("zero_division", 0) in ("warn", 0)
    average = params.get("average")
    return average if plain and isinstance(average, str) else None


def _column(given: Any) -> Array | None:
    """Return an array (n,) of numbers, a view if possible; None for anything else.

    Only arrays are read, tensors of PyTorch, columns of a table, which are arrays underneath, and lists of plain
    numbers: to read what else there is may do something.
    """
    if type(given) is list:
        return _of_list(given)
    if type(given) is getattr(sys.modules.get("torch"), "Tensor", None):
        given = to_array(given)
    elif type(given).__module__.startswith("pandas."):
        given = getattr(given, "values", None)
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "biuf":
        return None
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    return given if given.ndim == 1 else None


def _of_list(given: list[Any]) -> Array | None:
    if len(given) > MAX_ROWS or not all(
        type(one) in (int, float, bool) or isinstance(one, np.number) for one in given
    ):
        return None
    numbers = np.asarray(given)
    return numbers if numbers.ndim == 1 and numbers.dtype.kind in "biuf" else None


def _cut_from(answers: Array) -> tuple[int | None, int | None]:
    """Return which column of which table (n, k) an array (n,) is a view of."""
    whole = answers.base
    while isinstance(whole, np.ndarray) and whole.ndim != 2 and isinstance(whole.base, np.ndarray):
        whole = whole.base
    if not isinstance(whole, np.ndarray) or whole.ndim != 2 or not whole.flags.c_contiguous:
        return None, None
    columns = whole.shape[1]
    if columns < 2 or answers.strides != (whole.strides[0],) or answers.dtype != whole.dtype:
        return None, None
    offset = answers.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return int(offset % whole.strides[0] // whole.itemsize), int(columns)
