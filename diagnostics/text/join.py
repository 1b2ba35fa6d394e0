"""Joins words: lists, counts with their noun, durations, and what a traceback does not show."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[object], conjunction: str = "and", most: int | None = None) -> str:
    """Join items as in a sentence: ``a, b and c``.

    Args:
        items: at least one.
        conjunction: what stands before the last one.
        most: more items than this are counted: ``a, b and 3 more``.
    """
    words = [str(item) for item in items]
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def layers_named(paths: Iterable[str], most: int | None = None) -> str:
    """Join the names of layers: those that are bare numbers are layers of a Sequential.

    ``layers 1 and 3 of Sequential``, ``layer 1 of Sequential, and body.drop``.

    Args:
        paths: at least one.
        most: see `listed`.
    """
    names = list(paths)
    numbers = [name for name in names if name.replace(".", "").isdigit()]
    if not numbers:
        return listed(names, most=most)
    shown = numbers if most is None else numbers[:most]
    in_sequential = f"layer{'s' if len(numbers) > 1 else ''} {listed(numbers, most=most)} of Sequential"
    others = [name for name in names if name not in numbers]
    left = None if most is None else max(0, most - len(shown))
    if not others:
        return in_sequential
    return f"{in_sequential}, and {listed(others, most=left) if left != 0 else f'{len(others)} more'}"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: ``1 row``, ``3 rows``, ``1,024 rows``, ``2 batches``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def among(part: int, whole: int, noun: str, plural: str | None = None) -> str:
    """Write how many of several: ``3 of the 8 rows``, ``all 8 rows``, ``both rows``, ``the only row``."""
    if part < whole:
        return f"{part:,} of the {count_of(whole, noun, plural)}"
    if whole == 2:
        return f"both {plural or noun + 's'}"
    return f"the only {noun}" if whole == 1 else f"all {count_of(whole, noun, plural)}"


def duration(seconds: float) -> str:
    """Write a duration: ``2 min 5 s``, ``12.3 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def capitalized(sentence: str) -> str:
    """Return a sentence with its first letter in upper case and all others as they are."""
    return sentence[:1].upper() + sentence[1:]


def not_known(what: str, live: bool) -> str:
    """Say that a detail of a failure is not known, and how to get it.

    Args:
        what: the detail, as the subject of a sentence: ``which tensors these are``.
        live: whether the exception itself was given; its text alone holds no frames.
    """
    if live:
        return f"{capitalized(what)} could not be read from the traceback."
    return (
        f"{capitalized(what)} cannot be read from the traceback text: pass the exception to diagnostics.explain."
    )
