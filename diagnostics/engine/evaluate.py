"""Evaluates rules on facts, as soon as these are known."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from diagnostics.errors import message_of

from .finding import Finding
from .rule import Need, NotApplicable, Rule, hyphenated

_Check = tuple[Rule, str, Mapping[str, Need]]


class Evaluator:
    """Calls each check of each rule once, when the facts that it takes are known.

    Attributes:
        faults: errors in the rules themselves.
    """

    def __init__(self, rules: Sequence[Rule], taking: Collection[type] | None = None) -> None:
        """Prepare; `taking`: kinds of facts, to evaluate only the checks that take one of them."""
        self._rules = tuple(rules)
        self._facts: dict[type, Any] = {}
        self._waiting: list[_Check] = [
            (rule, name, needs)
            for rule in self._rules
            for name, needs in rule.checks().items()
            if taking is None or any(need.kind in taking for need in needs.values())
        ]
        self._checks = tuple(self._waiting)
        self._judged: set[str] = set()
        self._clean: set[str] = set()
        self._reasons: dict[str, str] = {}
        self._named: set[str] = set()
        self.faults: list[str] = []

    def add(self, *facts: Any) -> list[Finding]:
        """Add facts, and return the findings of the checks that now have all their facts."""
        self._facts.update((type(fact), fact) for fact in facts)
        return self._evaluate(lambda need: need.kind in self._facts)

    def close_phase(self) -> list[Finding]:
        """Return the findings of the checks whose missing facts are all optional."""
        return self._evaluate(lambda need: need.kind in self._facts or not need.required)

    def known(self, *kinds: type) -> tuple[Any, ...]:
        """Return those of the facts added that are of these kinds."""
        return tuple(self._facts[kind] for kind in kinds if kind in self._facts)

    @property
    def judged(self) -> frozenset[str]:
        """The rules that had their evidence, by name."""
        return frozenset(self._judged)

    @property
    def clean(self) -> frozenset[str]:
        """The checks that had their evidence and found nothing, as ``rule.method``."""
        return frozenset(self._clean)

    def not_applicable(self, *kinds: type) -> dict[str, str]:
        """Return the reason, by name, for each rule that could not be checked.

        Args:
            kinds: the facts that this entry point can give; rules that need others are omitted.
        """
        reasons = {
            rule.name: self._reasons.get(rule.name) or self._unmet(rule, kinds)
            for rule in self._rules
            if rule.name not in self._judged
            and any(
                all(need.kind in kinds for need in needs.values() if need.required)
                for owner, _, needs in self._checks
                if owner is rule
            )
        }
        return {name: why for name, why in reasons.items() if why}

    def _evaluate(self, is_met: Any) -> list[Finding]:
        ready = [c for c in self._waiting if all(map(is_met, c[2].values()))]
        self._waiting = [c for c in self._waiting if c not in ready]
        findings = []
        for rule, name, needs in ready:
            finding = self._call(rule, name, needs)
            if finding is not None and rule.name not in self._named:
                self._named.add(rule.name)
                findings.append(self._worded(finding))
        return findings

    def _call(self, rule: Rule, name: str, needs: Mapping[str, Need]) -> Finding | None:
        facts = {parameter: self._facts.get(need.kind) for parameter, need in needs.items()}
        try:
            finding: Finding | None = getattr(rule, name)(**facts)
        except NotApplicable as reason:
            self._reasons[rule.name] = str(reason) or self._reasons.get(rule.name, "")
            return None
        except Exception as fault:  # a fault of our own is a line in the report, never the user's problem
            self.faults.append(f"the rule {rule.name} failed: {type(fault).__name__}: {message_of(fault)}")
            self._reasons[rule.name] = "the rule itself failed"
            return None
        self._judged.add(rule.name)
        if finding is None:
            self._clean.add(f"{rule.name}.{name}")
        return finding

    def _worded(self, finding: Finding) -> Finding:
        """Word the fix for the libraries that the program trains with.

        Any fact can name them in `fix_libraries`, the most special first; the first one known decides. Its
        `arguments` is the class that stands for ``TrainingArguments``.
        """
        for fact in self._facts.values():
            if (libraries := getattr(fact, "fix_libraries", None)) is not None:
                return finding.for_library(*libraries, arguments=getattr(fact, "arguments", None))
        return finding.for_library("torch")

    def _unmet(self, rule: Rule, kinds: Sequence[type]) -> str:
        """Name the facts that a check still lacks: the most nearly satisfied, of several the last.

        Checks that need other facts than the entry can give are left out. Empty if none is left.
        """
        needs_of_checks = [
            [need.kind for need in needs.values() if need.required]
            for owner, _, needs in self._waiting
            if owner is rule
        ]
        lacking = [
            [kind for kind in needed if kind not in self._facts]
            for needed in needs_of_checks
            if all(kind in kinds for kind in needed)
        ]
        return needs(*min(reversed(lacking), key=len)) if lacking else ""


def needs(*kinds: type) -> str:
    """Say that facts of these kinds are missing: in the words of their `described`, or else by their name."""
    named = (getattr(kind, "described", hyphenated(kind.__name__).replace("-", " ")) for kind in kinds)
    return f"needs {' and '.join(named)}"
