"""Reads the same rows twice through copies of a data pipeline, and compares them; images with their masks, too."""

from __future__ import annotations

import copy
import logging
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.rng import generators_within, is_generator
from diagnostics.facts.array import Array
from diagnostics.facts.data import OrientedPairs, RereadFacts

from .arrays import fields, flat, is_tensor, to_array

MOST_ROWS = 64  # of a batch
MOST_BYTES = 256 * 2**20  # of arrays and tensors that are copied along with a dataset
MOST_OBJECTS = 2_000_000  # to be copied: about a second
SAMPLED = 32  # elements of a longer list, taken for all of them
SECONDS = 2.0  # for one batch: it is read three times

# Types that copy.deepcopy returns as they are.
_ATOMS = (
    *(str, bytes, int, float, complex, bool, type(None), type),
    *(ModuleType, FunctionType, BuiltinFunctionType, logging.Logger),
)
ROWS, READINGS = 8, 4
SMALLEST = 8  # side of an image
OF_MASK = 16  # different values that a mask has at most, and an image more


class _Unjudged(Exception):
    """No conclusion is possible; the message says why."""


@dataclass(frozen=True)
class Source:
    """A data pipeline that can be read again and again.

    Attributes:
        dataset: what rows are read from.
        collate: makes a batch of rows; None where the dataset hands out whole batches.
        read: called with a dataset, gives the rows of one batch: the same ones each time.
        seed: sets every global generator.
        fresh_workers: whether rows are read in processes that start over with each epoch.
    """

    dataset: Any
    collate: Callable[[Any], Any] | None
    read: Callable[[Any], Any]
    seed: Callable[[int], None]
    fresh_workers: bool = False


def reread(source: Source) -> RereadFacts:
    """Read a batch through a fresh copy, and through one that has read it before; the original is not read.

    Both readings begin with the same state of every generator that can be found, so random augmentation draws the
    same. The reading before them draws something else: whoever blanks words at random in the rows themselves would
    otherwise blank the same ones again.
    """
    try:
        return _Rereading(source).facts()
    except _Unjudged as reason:
        return RereadFacts(unjudged=str(reason))


def deep_copy(data: Any) -> Any:
    """Copy a dataset or the rows read from it with all that it holds; the very same if that cannot be done."""
    try:
        return _copier(data)(data)
    except _Unjudged:
        return data


@dataclass
class _Reading:
    """Rows as they were read, the same after they were collated, and the batch."""

    before: Any
    after: Any
    batch: dict[str, Array]


class _Rereading:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.parts = (source.dataset, source.collate)
        self.copied = _copier(self.parts)
        self.states = [(own, own.state()) for own in generators_within(*self.parts)]

    def facts(self) -> RereadFacts:
        source = self.source
        started = time.monotonic()
        first = self._fresh_reading()
        if time.monotonic() - started > SECONDS:
            raise _Unjudged(f"needs a batch that is read within {SECONDS:.0f} s, since it is read several times")
        used = self.copied(self.parts)
        before = _kept_state(used)
        source.seed(2)  # and the generators of its own go on from where they are
        earlier = self._read(used)
        now = _kept_state(used)
        keeps = sorted({name.rpartition(".")[2] for name in before | now if before.get(name) != now.get(name)})
        edited = not _same(earlier.before, earlier.after)
        again, raised = None, None
        try:
            self._begin()
            again = self._read(used)
        except Exception as error:  # the user's code, which did not raise at first
            raised = f"{type(error).__name__}: {error}"
        known = RereadFacts(
            rows=len(first.before) if isinstance(first.before, list) else None,
            first=first.batch,
            again={} if again is None else again.batch,
            raised=raised,
            culprit="collator" if edited else "dataset",
            name=_name(source.collate if edited else source.dataset),
            fresh_workers=source.fresh_workers,
        )
        if again is not None and _same(first.batch, again.batch):
            return replace(known, culprit=None, name=None)
        if keeps:
            raise _Unjudged(f"needs data that does not count or collect what was read, as {keeps[0]!r} does here")
        if not edited and again is not None and _same(first.before, again.before):
            raise _Unjudged("needs a collator that keeps nothing from one batch for the next")
        if not _same(first.batch, self._fresh_reading().batch):
            raise _Unjudged("needs data whose randomness can be put back; this draws from a source that cannot")
        return known

    def _fresh_reading(self) -> _Reading:
        parts = self.copied(self.parts)
        self._begin()
        try:
            return self._read(parts)
        except Exception as error:  # another stage meets it, and says so in full
            raise _Unjudged(f"needs a batch, and reading one raised {type(error).__name__}") from None

    def _begin(self) -> None:
        self.source.seed(1)
        for own, state in self.states:
            own.restore(state)

    def _read(self, parts: tuple[Any, Any]) -> _Reading:
        dataset, collate = parts
        rows = self.source.read(dataset)
        try:
            before = copy.deepcopy(rows)
        except Exception as error:
            raise _Unjudged(f"needs rows that can be copied ({type(error).__name__}: {error})") from None
        batch = rows if collate is None else collate(rows)
        arrays = {
            name: array for name, value in flat(fields(batch)).items() if (array := to_array(value)) is not None
        }
        if not arrays:
            raise _Unjudged("needs batches of numbers")
        return _Reading(before, rows, arrays)


# --- copies -----------------------------------------------------------------------------------------------------


def _copier(data: Any) -> Callable[[Any], Any]:
    """Return what copies `data`, but for the generators, models, tokenizers and tables in it, which are shared.

    Raises:
        _Unjudged: there is too much in it, or it reads from something that moves on.
    """
    shared, objects, size = {}, 0.0, 0.0
    waiting, seen = deque([(data, 1.0)]), set[int]()
    while waiting:
        value, times = waiting.popleft()
        held = _bytes_in(value)
        objects += times
        size += times * (held or 0)
        if objects > MOST_OBJECTS or size > MOST_BYTES:
            raise _Unjudged(
                f"needs data small enough to be copied: at most {MOST_BYTES >> 20} MiB and {MOST_OBJECTS:,} "
                "objects"
            )
        if held is not None or isinstance(value, _ATOMS) or id(value) in seen:
            continue
        seen.add(id(value))
        if hasattr(type(value), "__next__"):
            raise _Unjudged(f"needs data that can be read again, not {type(value).__name__} objects that move on")
        if _is_shared(value):
            shared[id(value)] = value
        else:
            waiting.extend((part, times * share) for part, share in _parts(value))

    def copied(what: Any) -> Any:
        try:
            return copy.deepcopy(what, dict(shared))
        except Exception as error:  # whatever a class of the user's makes of it
            raise _Unjudged(f"needs data that can be copied ({type(error).__name__}: {error})") from None

    return copied


def _is_shared(value: Any) -> bool:
    """Whether this need not be copied: its state is put back otherwise, or reading does not change it."""
    kind = type(value)
    if is_generator(value) or hasattr(kind, "convert_tokens_to_ids") or hasattr(kind, "named_parameters"):
        return True
    return kind.__module__.partition(".")[0] == "pyarrow"


def _bytes_in(value: Any) -> int | None:
    """Return how many bytes of numbers a tensor, an array or a data frame holds; None for anything else.

    An array that nobody can write to, such as a file that is mapped into memory, counts too: it would be copied.
    """
    if isinstance(value, np.ndarray) or is_tensor(value):
        return int(getattr(value, "nbytes", 0))
    if callable(getattr(type(value), "memory_usage", None)):
        return int(np.sum(value.memory_usage()))
    return None


def _parts(value: Any) -> Iterator[tuple[Any, float]]:
    """Yield what would be copied along with `value`, and how many alike each stands for."""
    if isinstance(value, Mapping):
        yield from _some(value.keys())
        yield from _some(value.values())
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from _some(value)
    elif isinstance(value, MethodType):
        yield value.__self__, 1.0
    elif isinstance(value, partial):
        yield from ((part, 1.0) for part in (*value.args, *value.keywords.values()))
    yield from ((part, 1.0) for part in list(_attributes(value).values()))


def _some(values: Any) -> Iterator[tuple[Any, float]]:
    count = len(values)
    if count <= SAMPLED:
        yield from ((value, 1.0) for value in values)
        return
    if isinstance(values, list | tuple):
        chosen = [values[place] for place in np.linspace(0, count - 1, SAMPLED).astype(int)]
    else:
        chosen = [value for value, _ in zip(values, range(SAMPLED), strict=False)]
    yield from ((value, count / SAMPLED) for value in chosen)


def _attributes(value: Any) -> dict[str, Any]:
    try:
        return dict(vars(value))
    except TypeError:
        return {}


# --- what changed -----------------------------------------------------------------------------------------------


def _kept_state(parts: Any) -> dict[str, Any]:
    """Record numbers, lengths and None among the attributes of objects: what a curriculum counts in."""
    noted: dict[str, Any] = {}
    waiting, seen = deque([("", part) for part in parts]), set[int]()
    while waiting and len(seen) < SAMPLED**2:
        path, value = waiting.popleft()
        if id(value) in seen or isinstance(value, _ATOMS) or _is_shared(value):
            continue
        seen.add(id(value))
        if isinstance(value, list | tuple) and len(value) <= SAMPLED:  # of transforms, or of datasets
            waiting.extend((f"{path}[{place}]", part) for place, part in enumerate(value))
        if isinstance(value, MethodType):
            waiting.append((path, value.__self__))
        for name, part in _attributes(value).items():
            if isinstance(part, bool | int | float | str | type(None)):
                noted[f"{path}.{name}"] = part
            elif isinstance(part, list | deque | set):
                noted[f"{path}.{name}"] = len(part)
            if not isinstance(part, Mapping):
                waiting.append((f"{path}.{name}", part))
    return noted


def _same(one: Any, other: Any) -> bool:
    """Whether two values agree as far as they can be compared; numbers that round differently do."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, str | bytes) or isinstance(other, str | bytes):
        return bool(type(one) is type(other) and one == other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and not _numbers(one):
        return len(one) == len(other) and all(map(_same, one, other))
    if not (_holds_numbers(one) and _holds_numbers(other)):
        return type(one) is type(other) and _attributes(one).keys() == _attributes(other).keys()
    left, right = to_array(one), to_array(other)
    if left is None or right is None:
        return left is right
    return left.shape == right.shape and np.allclose(left, right, rtol=1e-5, equal_nan=True)


def _numbers(values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _holds_numbers(value: Any) -> bool:
    """Whether this is a number, a list of such, a tensor, an array, or an image that can be made one."""
    if isinstance(value, list | tuple):
        return _numbers(value)
    of_arrays = any(hasattr(type(value), name) for name in ("__array__", "__array_interface__"))
    return isinstance(value, int | float | np.generic) or is_tensor(value) or of_arrays


def _name(value: Any) -> str:
    """Name a dataset's class, or a collator as its user wrote it."""
    inner = getattr(value, "data_collator", None)  # a Trainer wraps the collator, to take columns away
    value = value if inner is None else inner
    return getattr(value, "__name__", None) or type(value).__name__


def seed_globals(number: int) -> None:
    """Seed Python's and NumPy's global generators, and PyTorch's if it is in use."""
    random.seed(number)
    np.random.seed(number)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(number)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(number)


def oriented_pairs(read: Callable[[int], Any], places: Iterable[int], seconds: float) -> OrientedPairs | None:
    """Read each row several times; None if they are not an image and a mask that are flipped or rotated.

    Args:
        read: returns the row at a place.
        places: of rows.
        seconds: after which no further row is read.
    """
    rows = compared = apart = images_moved = masks_moved = 0
    deadline = time.monotonic() + seconds
    for place in places:
        readings = [pair for _ in range(READINGS) if (pair := _image_and_mask(read(place))) is not None]
        if len(readings) < READINGS or rows == ROWS or time.monotonic() > deadline:
            break
        rows += 1
        for (image, mask), (other_image, other_mask) in combinations(readings, 2):
            of_image, of_mask = _orientations(image, other_image), _orientations(mask, other_mask)
            if of_image and of_mask:
                compared += 1
                apart += not of_image & of_mask
                images_moved += 0 not in of_image
                masks_moved += 0 not in of_mask
    if not images_moved and not masks_moved:
        return None
    return OrientedPairs(rows, compared, apart, images_moved, masks_moved)


def _image_and_mask(row: Any) -> tuple[Array, Array] | None:
    arrays = [array for value in flat(fields(row)).values() if (array := to_array(value)) is not None]
    arrays = [array for array in arrays if array.ndim in (2, 3) and min(array.shape[-2:]) >= SMALLEST]
    masks = [array for array in arrays if len(np.unique(array)) <= OF_MASK]
    images = [array for array in arrays if len(np.unique(array)) > OF_MASK]
    if len(masks) != 1 or len(images) != 1 or masks[0].shape[-2:] != images[0].shape[-2:]:
        return None
    return images[0].copy(), masks[0].copy()  # the dataset may hand out the same memory again


def _orientations(one: Array, other: Array) -> frozenset[int]:
    """Return the flips and rotations that turn one array into the other: 0 for none, to 7."""
    turned: Sequence[Array] = [
        np.rot90(flipped, turns, axes=(-2, -1)) for flipped in (one, one[..., ::-1]) for turns in range(4)
    ]
    return frozenset(number for number, array in enumerate(turned) if np.array_equal(array, other))
