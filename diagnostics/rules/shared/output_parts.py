"""Judges each of several outputs as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import OutputPart, SeveralOutputs


def first_found(several: SeveralOutputs, judge: Callable[[OutputPart], Finding | None]) -> Finding | None:
    """Return the first output's finding, if any; its message names the output.

    Raises:
        NotApplicable: no output could be judged.
    """
    reason: NotApplicable | None = None
    judged = False
    for part in several.parts:
        try:
            finding = judge(part)
        except NotApplicable as why:
            reason = why
            continue
        judged = True
        if finding is not None:
            evidence = {**finding.evidence, "output": part.name}
            return replace(finding, message=f"Output {part.name}: {finding.message}", evidence=evidence)
    if not judged and reason is not None:
        raise reason
    return None
