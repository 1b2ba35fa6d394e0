"""Puts rules to the facts."""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from diagnostics.errors import message_of

from .finding import Finding
from .rule import NotApplicable, Rule

Check = Callable[..., Finding | None]


@functools.cache
def _checks(rules: tuple[Rule, ...]) -> tuple[tuple[Rule, Check, dict[str, tuple[type, bool]]], ...]:
    """List every ``from_*`` method with the facts it takes: {parameter: (type, required)}."""
    checks = []
    for rule in rules:
        for name, method in inspect.getmembers(rule, inspect.ismethod):
            if name.startswith("from_"):
                hints = typing.get_type_hints(method)
                hints.pop("return", None)
                checks.append((rule, method, {p: _fact_type(hint) for p, hint in hints.items()}))
    return tuple(checks)


def _fact_type(hint: Any) -> tuple[type, bool]:
    if isinstance(hint, types.UnionType):
        (kind,) = (arg for arg in typing.get_args(hint) if arg is not type(None))
        return kind, False
    return hint, True


class Evaluator:
    """Puts every rule to the facts as they come in, each check once, as soon as it has what it needs."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)
        self._facts: dict[type, Any] = {}
        self._waiting = list(_checks(self._rules))
        self._judged: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._named: set[str] = set()
        self.faults: list[str] = []

    def add(self, *facts: Any) -> list[Finding]:
        """Take more facts and return what can be found now that could not be before."""
        self._facts.update((type(fact), fact) for fact in facts)
        ready = [c for c in self._waiting if self._has_all(c[2])]
        self._waiting = [c for c in self._waiting if not self._has_all(c[2])]
        findings = []
        for rule, check, needs in ready:
            finding = self._call(rule, check, needs)
            if finding is not None and rule.name not in self._named:
                self._named.add(rule.name)
                findings.append(finding)
        return findings

    @property
    def judged(self) -> frozenset[str]:
        """The rules that had their evidence, by name."""
        return frozenset(self._judged)

    def not_applicable(self, *kinds: type) -> dict[str, str]:
        """Say why, by name, for each rule that could not be judged.

        Args:
            kinds: the facts that this way in can give: rules that no such facts would do for are not its business.
        """
        business = {
            rule.name
            for rule, _, needs in _checks(self._rules)
            if all(kind in kinds for kind, required in needs.values() if required)
        }
        return {
            rule.name: self._reasons.get(rule.name) or self._unmet(rule)
            for rule in self._rules
            if rule.name in business - self._judged
        }

    def _has_all(self, needs: dict[str, tuple[type, bool]]) -> bool:
        return all(kind in self._facts for kind, required in needs.values() if required)

    def _call(self, rule: Rule, check: Check, needs: dict[str, tuple[type, bool]]) -> Finding | None:
        try:
            finding = check(**{name: self._facts.get(kind) for name, (kind, _) in needs.items()})
        except NotApplicable as reason:
            self._reasons[rule.name] = str(reason)
            return None
        except Exception as fault:  # a fault of our own is a line in the report, never the user's problem
            self.faults.append(f"the rule {rule.name} failed: {type(fault).__name__}: {message_of(fault)}")
            self._reasons[rule.name] = "the rule itself failed"
            return None
        self._judged.add(rule.name)
        return finding

    def _unmet(self, rule: Rule) -> str:
        """Name the facts that the most nearly satisfied check of a rule still lacks."""
        lacking = [
            [kind.__name__ for kind, required in needs.values() if required and kind not in self._facts]
            for owner, _, needs in self._waiting
            if owner is rule
        ]
        lacking.sort(key=len)
        return f"needs {' and '.join(lacking[0])}" if lacking else "needs facts that no probe gives yet"
