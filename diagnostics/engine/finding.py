"""The result of a rule that found its pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from diagnostics.facts.where import Where

Severity = Literal["error", "warning", "note"]
"""error: training cannot be right. warning: very likely harmful. note: worth knowing."""

Stage = Literal[
    "data",
    "batch",
    "model",
    "gradient",
    "numerics",
    "optimizer",
    "evaluation",
    "memory",
    "device",
    "distributed",
    "reproducibility",
]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
STAGES: tuple[Stage, ...] = get_args(Stage)


@dataclass(frozen=True)
class Finding:
    """One bad pattern, with the evidence and the fix.

    Attributes:
        rule: name of the rule, as in the catalogue: ``labels-out-of-range``.
        severity: ``error``, ``warning`` or ``note``.
        stage: the part of the pipeline the pattern belongs to.
        message: what was seen, with the numbers, and why that cannot work.
        evidence: the numbers by name; plain values that JSON can hold.
        fix: what to change, as code where a line of code says it.
        alternatives: what else to try, the likeliest first.
        where: a line in the user's code, if one is known.
        step: the training step, counted from 0, if there is one.
        consequences: other findings that follow from this one.
        other_trainings: number of other trainings of the same script with a finding of the same rule.
        fixes: fix and alternatives by library, for the evaluator to choose from.
    """

    rule: str
    severity: Severity
    stage: Stage
    message: str
    fix: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    where: Where | None = None
    step: int | None = None
    consequences: tuple[Finding, ...] = ()
    other_trainings: int = 0
    alternatives: tuple[str, ...] = ()
    fixes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def for_library(self, *libraries: str, arguments: str | None = None) -> Finding:
        """Return the finding with the fix for a library; the one for PyTorch if there is no other.

        Args:
            libraries: the most special first: ``peft``, ``trainer``, then ``transformers``.
            arguments: the class that stands for ``TrainingArguments``, as TRL's ``SFTConfig`` does.
        """
        given = (self.fix, *self.alternatives)
        chosen = next((self.fixes[library] for library in libraries if self.fixes.get(library)), given)
        if arguments is not None:
            chosen = tuple(fix.replace("TrainingArguments(", f"{arguments}(") for fix in chosen)
        return replace(self, fix=chosen[0], alternatives=chosen[1:])

    @property
    def page(self) -> str:
        """The rule's page in the book."""
        return f"rules/{self.rule}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding in the layout of the JSON report."""
        where = self.where and {
            "file": self.where.file,
            "line": self.where.line,
            "function": self.where.function,
        }
        return {
            "rule": self.rule,
            "severity": self.severity,
            "stage": self.stage,
            "message": self.message,
            "evidence": dict(self.evidence),
            "where": where,
            "step": self.step,
            "fix": self.fix,
            "alternatives": list(self.alternatives),
            "page": self.page,
            "consequences": [consequence.as_dict() for consequence in self.consequences],
            "other_trainings": self.other_trainings,
        }
