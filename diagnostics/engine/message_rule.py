"""The base class of rules for which the table of messages holds rows that explain themselves."""

from __future__ import annotations

from typing import ClassVar

from diagnostics.engine.finding import Finding, Severity
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, KnownFailure


class MessageRule(Rule):
    """A failure whose message names its cause."""

    stage = "model"  # of a subclass: its folder's
    severity: ClassVar[Severity] = "error"

    @check
    def from_message(self, crash: CrashFacts, known: KnownFailure) -> Finding:
        """Report the cause that the table gives.

        Raises:
            NotApplicable: the message points to another rule.
        """
        if known.rule != self.name:
            raise NotApplicable(f"the error message points to {known.rule} instead")
        named = {"kind": known.kind or None, "what": known.what, "said": known.said}
        evidence = {name: value for name, value in named.items() if value is not None}
        return self.found(known.cause, fix=known.fixes, evidence=evidence, where=crash.where, severity="error")
