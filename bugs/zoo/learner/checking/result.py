"""The result of a check, in the same shape for an exhibit, a chapter's exercises and a mystery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Judgement:
    """One thing that was looked at.

    Attributes:
        name: of it, a word or two.
        ok: whether it is as it must be.
        said: what was seen, in a sentence or two, with the numbers.
        advice: what to do about it; empty if it is right.
    """

    name: str
    ok: bool
    said: str
    advice: str = ""


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        kind: "exhibit", "chapter" or "mystery".
        id: what a learner calls it: "04", "chapter-05" or "mystery-04".
        judgements: one for each thing that was looked at.
        reservations: what is right but unusual, a sentence each; they do not prevent a pass.
        rules: that `diagnose run` reported, as errors or warnings.
        metrics: that the script printed.
        seconds: that the learner's script ran.
    """

    kind: str
    id: str
    judgements: tuple[Judgement, ...]
    reservations: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether everything is as it must be."""
        return all(judgement.ok for judgement in self.judgements)

    @property
    def why_not(self) -> list[str]:
        """What is wrong, a line each; empty if it passed."""
        wrong = [judgement for judgement in self.judgements if not judgement.ok]
        return [f"{each.name}: {each.said} {each.advice}".strip() for each in wrong]

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain JSON values."""
        return {
            "kind": self.kind,
            "id": self.id,
            "passed": self.passed,
            "reservations": list(self.reservations) if self.passed else [],
            "why_not": self.why_not,
            "judgements": [vars(judgement) for judgement in self.judgements],
            "rules": list(self.rules),
            "metrics": dict(self.metrics),
            "seconds": round(self.seconds, 2),
        }
