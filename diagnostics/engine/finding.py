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
class CodeFrame:
    """Lines of the script around one that a finding is about.

    Attributes:
        first: number of the first line, counted from 1.
        lines: the code, without common indentation.
        at: index of the line that the finding is about.
        mark: characters of that line that it is about, from the first up to the one behind the last; None if they
            are not known.
    """

    first: int
    lines: tuple[str, ...]
    at: int
    mark: tuple[int, int] | None = None

    def numbered(self, width: int | None = None, *, alone: bool = False) -> list[str]:
        """Return the lines with their numbers, and with carets under the part that is meant.

        Args:
            width: columns to which a line is cut; None for any.
            alone: whether to leave out the lines before and after.
        """
        digits, shown = len(str(self.first + len(self.lines) - 1)), []
        for index, line in enumerate(self.lines):
            if alone and index != self.at:
                continue
            code = line.strip() if alone else line
            shown.append(f"{self.first + index:{digits}} | {code}".rstrip())
            if index == self.at and self.mark is not None and self._is_part:
                start, end = (place - (len(line) - len(line.lstrip()) if alone else 0) for place in self.mark)
                shown.append(f"{'':{digits}} | {' ' * start}{'^' * (end - start)}")
        return shown if width is None else [one if len(one) <= width else f"{one[: width - 1]}…" for one in shown]

    @property
    def _is_part(self) -> bool:
        """Whether the mark leaves out a part of the line."""
        line = self.lines[self.at]
        return self.mark is not None and line[slice(*self.mark)] != line.strip()


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
        code: the line at `where` and those around it, if the script is still as it was when it ran.
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
    code: CodeFrame | None = field(default=None, repr=False, compare=False)

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
        where = self.where and {name: value for name, value in vars(self.where).items() if value is not None}
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
