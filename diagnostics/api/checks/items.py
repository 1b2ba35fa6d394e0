"""`ItemChecks`: checks of single items of a dataset, for tests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any

from diagnostics.collectors.checks.calls import all_random_states_kept, seed_all
from diagnostics.collectors.checks.items import item_places, mismatch, place_words, read_items, relation, shown
from diagnostics.collectors.isolation.rng import generators_within
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.errors import InvalidInput, ends_at_the_caller, typed_message, what
from diagnostics.text.join import count_of

from .result import CheckResult, Checks

__tracebackhide__ = ends_at_the_caller

ITEMS = 8  # read by a check: enough for lengths to differ, quick where an item is an image


class ItemChecks(Checks):
    """The checks of `LoaderChecks` that read single items."""

    def round_trip(
        self,
        items: Any,
        encode: Callable[[Any], Any],
        decode: Callable[[Any], Any],
        *,
        atol: float = 0.0,
        may_change: Collection[str] = (),
        count: int = ITEMS,
    ) -> CheckResult:
        """Check that ``decode(encode(x))`` equals x: image to tensor to image, text to tokens to text.

        Args:
            items: a dataset or a list of inputs for `encode`.
            encode: the encoding that the dataset applies.
            decode: its inverse, as you would use it to look at an item.
            atol: by how much numbers may differ, such as 1 for 8-bit images that are resampled.
            may_change: keys of an item that `decode` does not restore.
            count: number of items to try, spread over the dataset.

        Raises:
            CheckFailed: an item is not restored; the message says how the result relates to it.
            InvalidInput: an argument is wrong.
        """
        check_callables("round_trip", encode=encode, decode=decode)
        name = "round trip"
        with all_random_states_kept(items, encode, decode):
            seed_all(0)
            originals = read_items(deep_copy(items), None, count)
            for number, original in enumerate(originals):
                back = called_with(
                    "decode", decode, called_with("encode", encode, copy.deepcopy(original), "round_trip")
                )
                found = mismatch(original, back, may_change, atol)
                if found is not None:
                    inner = original, back
                    how = relation(inner[1], inner[0]) or _inner_relation(back, original)
                    seen = f"item {number} does not come back: decode(encode(x)) is not x. {place_words(found)}"
                    return self._failed(
                        name,
                        f"{seen}.{' ' + how if how else ''}",
                        "make decode the inverse of every step of encode, in reverse order; what the model sees "
                        "is not what you look at otherwise",
                        numbers={"item": number, "largest": found.largest, "different": found.count},
                    )
        return self._passed(name, f"{count_of(len(originals), 'item')} came back", items=len(originals))

    def same_item_twice(
        self,
        dataset: Any,
        *,
        may_change: Collection[str] = (),
        indices: Collection[int] | None = None,
        count: int = ITEMS,
    ) -> CheckResult:
        """Check that reading an item twice, with the same random numbers, gives the same item.

        The check fails if reading changes what the dataset stores. Random augmentation draws the same numbers both
        times.

        Args:
            dataset: a dataset with an index, or one that can be iterated repeatedly.
            may_change: keys that may differ, such as the time of reading.
            indices: the indices to read; None for `count` of them, spread over the dataset.
            count: number of items to read.

        Raises:
            CheckFailed: an item differs.
            InvalidInput: this is not a dataset.
        """
        name = "same item twice"
        check_no_graph(dataset, "same_item_twice")
        with all_random_states_kept(dataset):
            copied = deep_copy(dataset)
            states = [(own, own.state()) for own in generators_within(copied)]
            readings = []
            for _ in range(2):
                for own, state in states:
                    own.restore(state)
                seed_all(1)
                readings.append([copy.deepcopy(item) for item in _read(copied, indices, count)])
        places = item_places(dataset, indices, count) or range(len(readings[0]))
        for place, first, second in zip(places, *readings, strict=True):
            if (found := mismatch(first, second, may_change)) is not None:
                return self._failed(
                    name,
                    f"item {place}, read twice with the same random numbers, differs: {place_words(found)}. "
                    "Reading it changes what the dataset stores, so each epoch sees other data.",
                    "copy what is stored before you edit it: row = copy.deepcopy(self.rows[index]); use x = x / "
                    "255, not x /= 255. Name a key that has to differ in may_change",
                    rule="unstable-batch",
                    numbers={"item": place, "different": found.count, "largest": found.largest},
                )
        return self._passed(name, f"{count_of(len(readings[0]), 'item')}, twice the same", items=len(readings[0]))

    def no_augmentation(
        self,
        dataset: Any,
        *,
        may_change: Collection[str] = (),
        indices: Collection[int] | None = None,
        count: int = ITEMS,
    ) -> CheckResult:
        """Check that items of an evaluation dataset do not depend on random numbers.

        Args:
            dataset: the evaluation dataset, with its transform; may be a `tf.data.Dataset`.
            may_change: keys that may differ.
            indices: the indices to read; None for `count` of them, spread over the dataset.
            count: number of items to read.

        Raises:
            CheckFailed: an item changes with different random numbers.
            InvalidInput: this is not a dataset.
        """
        name = "no augmentation"
        with all_random_states_kept(dataset):
            readings = []
            for number in range(2):
                copied = deep_copy(dataset)  # so that what reading edits is not taken for chance
                seed_all(number + 1)
                if number:
                    _advance(copied)
                readings.append([copy.deepcopy(item) for item in _read(copied, indices, count)])
        places = item_places(dataset, indices, count) or range(len(readings[0]))
        for place, first, second in zip(places, *readings, strict=True):
            if (found := mismatch(first, second, may_change)) is not None:
                return self._failed(
                    name,
                    f"item {place} differs under other random numbers: {place_words(found)}. Evaluation draws at "
                    "random, so its metric changes from run to run, and is measured on distorted data.",
                    "give the evaluation dataset a transform without random crops, flips, noise or masking",
                    rule="unseeded-randomness",
                    numbers={"item": place, "different": found.count, "largest": found.largest},
                )
        return self._passed(name, f"{count_of(len(readings[0]), 'item')} without chance", items=len(readings[0]))


def _read(dataset: Any, indices: Collection[int] | None, count: int) -> list[Any]:
    try:
        return read_items(dataset, indices, count)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"Reading items of {what(dataset)} raised {typed_message(error)}. The check needs items that can be "
            "read."
        ) from error


def _advance(dataset: Any) -> None:
    """Bring generators that a copy shares with its original into another state; it is restored later."""
    for own in generators_within(dataset):
        draw = getattr(own.generator, "random", None) or getattr(own.generator, "random_sample", None)
        if draw is not None:
            draw()
        else:
            own.generator.manual_seed(2)


def called_with(what_is_called: str, function: Callable[[Any], Any], value: Any, check: str = "round_trip") -> Any:
    """Call a function of the user's.

    Raises:
        InvalidInput: the function raised; the message describes its argument.
    """
    try:
        return function(value)
    except Exception as error:
        raise InvalidInput(
            f"{check}() called {what_is_called} with {shown(value)}, and that raised {typed_message(error)}."
        ) from error


def _inner_relation(back: Any, original: Any) -> str:
    """Relate the first parts that differ, where an item has several."""
    if type(back) is not type(original) or not isinstance(original, dict | list | tuple):
        return ""
    pairs = (
        [(back.get(key), value) for key, value in original.items()]
        if isinstance(original, dict)
        else list(zip(back, original, strict=False))
    )
    return next((how for one, other in pairs if mismatch(other, one) and (how := relation(one, other))), "")


def check_callables(check: str, **functions: Any) -> None:
    """Reject arguments that cannot be called."""
    for name, function in functions.items():
        if not callable(function):
            raise InvalidInput(
                f"{check}() was given {what(function)} as {name}. It takes a function of one argument."
            )


def check_no_graph(dataset: Any, check: str) -> None:
    """Reject a TensorFlow dataset, which a check cannot read in the way it needs."""
    if type(dataset).__module__.startswith("tensorflow."):
        if check == "reproducible_order":
            advice = "reshuffles in each iteration. Pass a function that makes it: lambda: make_dataset()"
        else:
            advice = f"stores nothing that reading could edit. Use no_augmentation instead of {check}"
        raise InvalidInput(f"{check}() was given a tf.data.Dataset, which {advice}.")
