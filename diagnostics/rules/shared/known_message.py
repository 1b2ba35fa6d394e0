"""Reports a failure whose message explains itself, for the rule that the table of messages names."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.known import KnownFailure


def told(rule: Rule, crash: CrashFacts, known: KnownFailure) -> Finding:
    """Report the cause that the table gives.

    Raises:
        NotApplicable: the message points to another rule.
    """
    if known.rule != rule.name:
        raise NotApplicable(f"the message points to {known.rule}")
    return rule.found(
        known.cause, fix=known.fixes, evidence={"said": known.said}, where=crash.where, severity="error"
    )
