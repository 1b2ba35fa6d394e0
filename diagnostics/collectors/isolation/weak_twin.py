"""A second object with the same attributes, which does not keep the first alive."""

from __future__ import annotations

from typing import Any


def weak_twin(original: Any) -> Any:
    """Return another object of the same class that shares the attribute dictionary.

    A reference to the original would keep a module or an optimizer and its memory alive, and hide that its owner
    has deleted it. Attributes set on one object are set on the other.

    Returns:
        The original where no twin is possible: without a ``__dict__``, or with a ``__del__``, which would run
        twice.
    """
    kind = type(original)
    if hasattr(kind, "__del__") or not hasattr(original, "__dict__"):
        return original
    try:
        twin = object.__new__(kind)
        object.__setattr__(twin, "__dict__", original.__dict__)
    except Exception:  # a class with its own way to make objects
        return original
    return twin
