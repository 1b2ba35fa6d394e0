"""Groups findings by cause: a report names the cause and lists its consequences under it.

Each rule declares its direct consequences in `Rule.causes`; these can have further consequences. A pair is
declared only if one finding fully explains the other: doubtful pairs are reported as two findings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        self._causes = {rule.name: rule.causes for rule in rules}
        self._all: dict[str, frozenset[str]] = {}

    def follows(self, rule: str, cause: str) -> bool:
        """Whether the findings of `rule` follow from those of `cause`, directly or indirectly.

        If two rules cause each other, neither follows: both are reported.
        """
        return rule in self._caused_by(cause) and cause not in self._caused_by(rule)

    def explains(self, cause: Finding, finding: Finding) -> bool:
        """Whether one finding follows from another of the same training, given the measured numbers."""
        if (cause.rule, finding.rule) == ("labels-unrelated", "dead-units"):  # not all that follows from these
            return bool(finding.evidence.get("died"))
        if not self.follows(finding.rule, cause.rule) or _is_certain(finding):
            return False
        if (cause.rule, finding.rule) == ("growing-memory", "out-of-memory"):
            return _ran_full(cause.evidence, finding.evidence)
        if finding.rule == "unreached-parameters" and cause.rule in ("dead-units", "saturated-activations"):
            return "without_a_path" in finding.evidence and not finding.evidence["without_a_path"]
        if cause.rule == "dead-units" and finding.rule in NO_LEARNING:
            return not cause.evidence.get("unlearnable")
        return True

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

    def _caused_by(self, cause: str) -> frozenset[str]:
        if cause not in self._all:
            found: set[str] = set()
            waiting = [cause]
            while waiting:
                new = set(self._causes.get(waiting.pop(), ())) - found
                found |= new
                waiting += new
            self._all[cause] = frozenset(found - {cause})
        return self._all[cause]


def _with(cause: Finding, consequences: list[Finding]) -> Finding:
    if not consequences:
        return cause
    worst = min((cause, *consequences), key=lambda finding: SEVERITIES.index(finding.severity))
    return replace(cause, severity=worst.severity, consequences=tuple(consequences))


def _is_certain(finding: Finding) -> bool:
    """Whether nothing else is needed to explain a finding: a softmax over one unit gives 1 in any model."""
    return finding.rule == "ignores-input" and finding.evidence.get("units") == 1


def _ran_full(growth: Mapping[str, object], end: Mapping[str, object]) -> bool:
    """Whether the memory that ran out is the memory that grew, and it grew by at least the size of the request.

    If it is known which objects are kept, the growth is not measured: then it continues until memory is full.
    """
    grew, tried = growth.get("grew_bytes"), end.get("tried_bytes")
    if not isinstance(grew, int | float):
        return True
    same = (growth.get("memory_of") == "process") == (end.get("device") == "CPU")
    return same and (not isinstance(tried, int | float) or grew >= tried)
