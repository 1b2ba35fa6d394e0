"""Something that is all that an object is, and does not keep the object alive."""

from __future__ import annotations

from typing import Any


def weak_twin(original: Any) -> Any:
    """Return another object of the same class that shares all attributes, now and later.

    Whoever held a module or an optimizer itself would keep it alive, with all its memory, and would never learn
    that its owner has let go of it. What the owner sets on the one is set on the other.

    Returns:
        The object itself where that cannot be had: without a ``__dict__``, or with a ``__del__``, which would run
        twice.
    """
    kind = type(original)
    if hasattr(kind, "__del__") or not hasattr(original, "__dict__"):
        return original
    try:
        twin = object.__new__(kind)
        object.__setattr__(twin, "__dict__", original.__dict__)
    except Exception:  # a class that is made in a way of its own
        return original
    return twin
