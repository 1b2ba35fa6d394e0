"""All rules: those of this library and those of installed packages."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from diagnostics import rules
from diagnostics.engine.causality import Causality
from diagnostics.engine.finding import STAGES
from diagnostics.engine.rule import Rule
from diagnostics.errors import InvalidInput, message_of, what
from diagnostics.text.join import listed

GROUP = "diagnostics.rules"
"""Entry points of this group name a `Rule`, or a module that contains rules."""


def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by stage and name."""
    return _everything(False)[0]


def rules_of_crashes() -> tuple[Rule, ...]:
    """Return the rules that judge an exception, and the rules of installed packages.

    The modules of other rules are not imported: that would take longer than explaining a traceback.
    """
    return _everything(True)[0]


def faults(of_crashes: bool = False) -> tuple[str, ...]:
    """Return the entry points that could not be used, with reasons."""
    return _everything(of_crashes)[1]


@functools.cache
def causality_of(of: tuple[Rule, ...]) -> Causality:
    """Return the causality that these rules declare."""
    return Causality(of)


@functools.cache
def _everything(of_crashes: bool) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    found = {rule.name: rule for rule in _own(of_crashes)}
    problems = []
    for entry in entry_points(group=GROUP):
        try:
            for rule in _of_entry_point(entry):
                if rule.name in found or rule.name in names_of_own():
                    raise InvalidInput(f"there is a rule {rule.name} already")
                found[rule.name] = rule
        except Exception as fault:
            kind = "" if isinstance(fault, InvalidInput) else f"{type(fault).__name__}: "
            problems.append(f"the rules of {entry.name} ({entry.value}) are left out: {kind}{message_of(fault)}")
    ordered = sorted(found.values(), key=lambda rule: (STAGES.index(rule.stage), rule.name))
    return tuple(ordered), tuple(problems)


def _own(of_crashes: bool) -> list[Rule]:
    found: list[Rule] = []
    for module in _modules():
        if not (of_crashes and _ignores_crashes(module)):
            found += _in_module(importlib.import_module(module.name))
    return found


def names_of_own() -> set[str]:
    """Return the names of this library's rules, by the names of their files, without importing them."""
    return {module.name.rpartition(".")[2].replace("_", "-") for module in _modules()}


def _modules() -> Iterator[pkgutil.ModuleInfo]:
    """Find the modules of this library's rules, without the code that they share."""
    apart = (__name__, f"{rules.__name__}.shared.")
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        if not module.ispkg and not module.name.startswith(apart):
            yield module


def _ignores_crashes(module: pkgutil.ModuleInfo) -> bool:
    """Return whether a module's source uses no facts about crashes; False if it cannot be read."""
    folder = getattr(module.module_finder, "path", None)
    if folder is None:
        return False
    try:
        source = (Path(folder) / f"{module.name.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    except OSError:  # in an archive
        return False
    return "facts.crash" not in source and "message_rule" not in source


def _of_entry_point(entry: EntryPoint) -> list[Rule]:
    loaded: Any = entry.load()
    if isinstance(loaded, ModuleType):
        if not (found := _in_module(loaded)):
            raise InvalidInput("the module holds no rule")
        return found
    if not (inspect.isclass(loaded) and issubclass(loaded, Rule)):
        raise InvalidInput(f"it names {what(loaded)}, not a subclass of diagnostics.engine.rule.Rule")
    return [loaded()]


def _in_module(module: ModuleType) -> list[Rule]:
    """Return the rules that a module defines; a class without checks is a base class."""
    own = [member for member in vars(module).values() if inspect.isclass(member)]
    kinds = [member for member in own if member.__module__ == module.__name__ and issubclass(member, Rule)]
    return [kind() for kind in kinds if kind._needs]


def names_without_rule(names: Iterable[str], place: str) -> list[str]:
    """Return a sentence for each name that no rule has; `place` says where they were given."""
    own = names_of_own()  # importing every rule takes longer than explaining a traceback
    mistakes = []
    for name in names:
        if name not in own and name not in (known := [rule.name for rule in all_rules()]):
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"Did you mean {listed(near, 'or')}?" if near else "`diagnose rules` lists all rules."
            mistakes.append(f"{place} names {name!r}, but there is no such rule. {hint}")
    return mistakes
