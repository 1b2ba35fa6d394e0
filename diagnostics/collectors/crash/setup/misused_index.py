"""Recognises what an index was taken for, from the line that used it: the message alone has several causes.

``too many indices`` of a line that asks by name (``sample["input"]``) is no matter of axes: what is asked is no
dict. ``only integer scalar arrays`` of a slice is no matter of ``concatenate``: a bound of the slice is no number.
"""

from __future__ import annotations

import re

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.known import KnownFailure

MOST_READ = 400  # characters of the line
RULE = "mismatched-call"

_NOT_BY_NAME = re.compile(
    r"^(?:too many indices for (?:tensor|array)|only integers, slices|new\(\): invalid data type 'str'"
    r"|only integer tensors of a single element)"
)
_BY_NAME = re.compile(
    r"(?P<held>[A-Za-z_][\w.]{0,60}(?:\[\d{1,4}\])?)\[(?P<quote>['\"])(?P<key>[^'\"\n]{1,60})(?P=quote)\]"
)
_NO_NUMBER = re.compile(
    r"^only (?:integer scalar arrays|size-1 arrays|length-1 arrays|0-dimensional arrays) can be converted to"
)
_SLICE = re.compile(r"(?P<held>[A-Za-z_][\w.]{0,60})\[[^\[\]\n:]{0,80}:(?P<bounds>[^\[\]\n]{0,120})\]")


def misused_index(crash: Crash) -> KnownFailure | None:
    """Recognise an index by name into what is no dict, and a slice whose bounds are no numbers.

    Returns:
        None if the line shows neither.
    """
    facts = crash.facts
    line = (facts.frames[-1].code or "")[:MOST_READ] if facts.frames else ""
    message = facts.message[:MOST_READ]
    if not line:
        return None
    if _NOT_BY_NAME.match(message):
        held = {found["held"]: found["key"] for found in _BY_NAME.finditer(line)}
        return _no_dict(*next(iter(held.items())), message) if len(held) == 1 else None
    found = _SLICE.search(line) if _NO_NUMBER.match(message) else None
    return None if found is None else _no_bound(found, message)


def _no_dict(held: str, key: str, message: str) -> KnownFailure:
    return KnownFailure(
        RULE,
        f"{held} is asked for {key!r} by name, and is a tensor or an array, not a dict: what made it (the "
        f"dataset, a "
        "transform, the collate function) gives something else than the line expects.",
        (
            f"print(type({held})) just before, and the same of dataset[0]: each step from the dataset on "
            f"must return "
            "the dict",
            "look for a return that is left over, or one too early, in __getitem__ and the transforms",
        ),
        message.splitlines()[0],
    )


def _no_bound(found: re.Match[str], message: str) -> KnownFailure:
    return KnownFailure(
        RULE,
        f"{found['held']} is sliced, and one of the bounds is an array, a float or a tensor of several values, "
        f"where a whole number is expected: {found['bounds'].strip() or 'the bounds'}.",
        (
            "int(x) around each bound, and // in place of /, which gives floats in Python 3",
            "print the bounds just before: np.random.randint(n, size=1) gives an array, randint(n) a number",
        ),
        message.splitlines()[0],
    )
