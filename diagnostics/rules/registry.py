"""Finds every rule of the library."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil

from diagnostics import rules
from diagnostics.engine.finding import STAGES
from diagnostics.engine.rule import Rule


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by stage and name."""
    found = []
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        if not module.ispkg:
            members = vars(importlib.import_module(module.name)).values()
            found += [m for m in members if inspect.isclass(m) and m.__module__ == module.name]
    chosen = [cls() for cls in found if issubclass(cls, Rule)]
    return tuple(sorted(chosen, key=lambda rule: (STAGES.index(rule.stage), rule.name)))
