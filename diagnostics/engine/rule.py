"""What a rule is."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from diagnostics.facts.where import Where

from .finding import STAGES, Finding, Severity, Stage

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
