"""Names many parameters in few words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from .join import listed

NAMED = 5  # more names than this are skipped over by the eye; the evidence holds them all


def describe_parameters(sizes: Mapping[str, int], others: Collection[str] = ()) -> str:
    """Name parameters by their common modules: ``encoder.layer.1.* (12 parameters), head.weight and 3 more``.

    Args:
        sizes: scalars by parameter name, its modules divided by ``.`` (PyTorch) or ``/`` (Keras).
        others: names of parameters that are not meant: no ``*`` may match one of them.

    Returns:
        At most `NAMED` names or modules, the largest first.
    """
    taken = {module for name in others for module in _modules(name)}
    groups: dict[str, list[str]] = {}
    for name in sizes:
        widest = next((module for module in _modules(name) if module not in taken), name)
        groups.setdefault(widest, []).append(name)
    ordered = sorted(groups.values(), key=lambda members: -sum(sizes[name] for name in members))
    named = [_label(members) for members in ordered[:NAMED]]
    if left := sum(len(members) for members in ordered[NAMED:]):
        named.append(f"{left} more")
    return listed(named)


def _modules(name: str) -> list[str]:
    """List the modules that a parameter lies in, outermost first, each with its divider at the end."""
    return [name[: divider.end()] for divider in re.finditer(r"[./]", name)]


def _label(members: list[str]) -> str:
    if len(members) == 1:
        return members[0]
    shared = set.intersection(*(set(_modules(name)) for name in members))
    module = max(shared, key=len)
    return f"{module}* ({len(members)} parameters)"
