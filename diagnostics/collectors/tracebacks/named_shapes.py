"""Compares the two shapes that a message names, where no rule knows the message."""

from __future__ import annotations

import re

MOST_READ = 2_000  # characters of a message: shapes stand near its beginning

_SHAPE = re.compile(r"[\[(]\s*(?P<sizes>(?:\d{1,9}|None|\?)(?:\s*,\s*(?:\d{1,9}|None|\?)){1,5}|\d{1,9},)\s*[\])]")
_ABOUT_SHAPES = re.compile(r"shape|size|dimension|\bdim\b|broadcast|incompatible|mismatch", re.IGNORECASE)

Sizes = tuple[int | None, ...]


def differing(message: str) -> str | None:
    """Say in which axes the two shapes of a message differ; None if it does not name exactly two."""
    text = message[:MOST_READ]
    if not _ABOUT_SHAPES.search(text):
        return None
    shapes = list(dict.fromkeys(_sizes(found["sizes"]) for found in _SHAPE.finditer(text)))
    if len(shapes) != 2 or not all(shapes):
        return None
    one, other = shapes
    told = f"The message names the shapes {_written(one)} and {_written(other)}"
    if len(one) != len(other):
        return f"{told}: they have {len(one)} and {len(other)} axes."
    apart = [
        f"axis {axis} ({left} against {right})"
        for axis, (left, right) in enumerate(zip(one, other, strict=True))
        if left != right and None not in (left, right)
    ]
    return f"{told}: they differ in {' and '.join(apart)}." if apart else None


def _sizes(text: str) -> Sizes:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(int(part) if part.isdigit() else None for part in parts)


def _written(sizes: Sizes) -> str:
    inside = ", ".join("None" if size is None else str(size) for size in sizes)
    return f"({inside},)" if len(sizes) == 1 else f"({inside})"
