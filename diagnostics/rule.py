"""What a rule is, and how rules are put to the facts."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from .errors import message_of
from .finding import STAGES, Finding, Severity, Stage, Where

SECTIONS = (
    "What it does",
    "Why it is bad",
    "Example",
    "Instead",
    "Thresholds",
    "Known problems",
    "Sources",
)
"""The sections of a rule's docstring, in order. The docstring is the rule's page in the book."""


class NotApplicable(Exception):
    """Raised by a rule whose evidence was not there; the message says what was missing."""


class Rule:
    """One bad pattern, found on facts alone.

    A subclass stands alone in `diagnostics/rules/<stage>/<name>.py` and takes its name and stage from there.
    Its ``from_*`` methods each name, by annotation, the facts that they need. They return a `Finding`, or
    None for "clean", or raise `NotApplicable`. A parameter annotated ``X | None`` gets None while `X` is not
    known.

    Attributes:
        severity: of its findings, unless a finding says otherwise.
        no_exhibit: why no cage in the zoo shows this bug; empty if one does.
    """

    name: ClassVar[str]
    stage: ClassVar[Stage]
    severity: ClassVar[Severity]
    no_exhibit: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Take name and stage from the place of the file."""
        *_, stage, name = cls.__module__.split(".")
        cls.name = name.replace("_", "-")
        if stage in STAGES:
            cls.stage = stage

    def summary(self) -> str:
        """Return the first sentence of the page: the pattern in a few words."""
        return (inspect.getdoc(self) or "").split("\n\n")[0].replace("\n", " ")

    def found(
        self,
        message: str,
        *,
        fix: str,
        evidence: Mapping[str, Any] | None = None,
        where: Where | None = None,
        severity: Severity | None = None,
        step: int | None = None,
    ) -> Finding:
        """Build the finding, with this rule's name, stage and severity."""
        return Finding(
            rule=self.name,
            severity=severity or self.severity,
            stage=self.stage,
            message=message,
            fix=fix,
            evidence=evidence or {},
            where=where,
            step=step,
        )


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by stage and name."""
    from . import rules

    found = []
    for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."):
        if not module.ispkg:
            members = vars(importlib.import_module(module.name)).values()
            found += [m for m in members if inspect.isclass(m) and m.__module__ == module.name]
    chosen = [cls() for cls in found if issubclass(cls, Rule)]
    return tuple(sorted(chosen, key=lambda rule: (STAGES.index(rule.stage), rule.name)))


Check = Callable[..., Finding | None]


@functools.cache
def _checks() -> tuple[tuple[Rule, Check, dict[str, tuple[type, bool]]], ...]:
    """List every ``from_*`` method with the facts it takes: {parameter: (type, required)}."""
    checks = []
    for rule in all_rules():
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


class Judge:
    """Puts every rule to the facts as they come in, each check once, as soon as it has what it needs."""

    def __init__(self) -> None:
        self._facts: dict[type, Any] = {}
        self._waiting = list(_checks())
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
            for rule, _, needs in _checks()
            if all(kind in kinds for kind, required in needs.values() if required)
        }
        return {
            rule.name: self._reasons.get(rule.name) or self._unmet(rule)
            for rule in all_rules()
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
