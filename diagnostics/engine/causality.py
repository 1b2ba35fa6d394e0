"""Groups findings by cause: a report names the cause and lists its consequences under it.

Each rule declares its direct consequences in `Rule.causes`; these can have further consequences. A pair is
declared only if one finding fully explains the other: doubtful pairs are reported as two findings. `Rule.explains`
decides where that depends on the measured numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .finding import SEVERITIES, Finding

if TYPE_CHECKING:
    from .rule import Rule

# The symptoms of almost every silent bug: the loss does not fall, and the predictions are useless.
NO_LEARNING = ("loss-plateau", "constant-predictions", "cannot-overfit-one-batch", "not-learning")
NAN = ("non-finite-activations", "non-finite-loss", "non-finite-gradients")
TOO_LARGE_STEPS = ("exploding-gradients", "loss-divergence", "loss-oscillation", *NO_LEARNING, *NAN)


class Causality:
    """Which rules' findings follow from which, as declared by the rules."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._all: dict[str, frozenset[str]] = {}

    def follows(self, rule: str, cause: str) -> bool:
        """Whether the findings of `rule` follow from those of `cause`, directly or indirectly.

        If two rules cause each other, neither follows: both are reported.
        """
        return rule in self._caused_by(cause) and cause not in self._caused_by(rule)

    def explains(self, cause: Finding, finding: Finding) -> bool:
        """Whether one finding follows from another of the same training, given the measured numbers."""
        rules = [self._rules[name] for name in (cause.rule, finding.rule) if name in self._rules]
        verdicts = [verdict for rule in rules if (verdict := rule.explains(cause, finding)) is not None]
        return all(verdicts) if verdicts else self.follows(finding.rule, cause.rule)

    def grouped(self, findings: Sequence[Finding]) -> list[Finding]:
        """Group each finding of one training under the first one that it follows from.

        A cause takes the severity of its worst consequence.
        """
        under: dict[str, list[Finding]] = {}
        causes: list[Finding] = []
        for finding in findings:
            roots = [one for one in findings if self.explains(one, finding) and not self._has_cause(one, findings)]
            if roots:
                under.setdefault(roots[0].rule, []).append(finding)
            else:
                causes.append(finding)
        return [_with(cause, under.get(cause.rule, [])) for cause in causes]

    def consequences(self, cause: str) -> frozenset[str]:
        """Return the rules whose findings follow from those of a rule, directly or indirectly."""
        return self._caused_by(cause)

    def _has_cause(self, finding: Finding, among: Sequence[Finding]) -> bool:
        return any(self.explains(other, finding) for other in among)

    def _declared(self, cause: str) -> set[str]:
        return set(self._rules[cause].causes) if cause in self._rules else set()

    def _caused_by(self, cause: str) -> frozenset[str]:
        if cause not in self._all:
            found: set[str] = set()
            waiting = [cause]
            while waiting:
                new = self._declared(waiting.pop()) - found
                found |= new
                waiting += new
            self._all[cause] = frozenset(found - {cause})
        return self._all[cause]


def _with(cause: Finding, consequences: list[Finding]) -> Finding:
    if not consequences:
        return cause
    worst = min((cause, *consequences), key=lambda finding: SEVERITIES.index(finding.severity))
    return replace(cause, severity=worst.severity, consequences=tuple(consequences))
