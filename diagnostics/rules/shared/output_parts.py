"""Judges each of several outputs as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from diagnostics.engine.finding import Finding
from diagnostics.facts.pipeline import OutputPart, SeveralOutputs

from .first_found import first_found


def first_output_found(several: SeveralOutputs, judge: Callable[[OutputPart], Finding | None]) -> Finding | None:
    """Return the first output's finding, if any; its message names the output.

    Raises:
        NotApplicable: no output could be judged.
    """

    def named(part: OutputPart) -> Finding | None:
        finding = judge(part)
        if finding is None:
            return None
        evidence = {**finding.evidence, "output": part.name}
        return replace(finding, message=f"Output {part.name}: {finding.message}", evidence=evidence)

    return first_found(several.parts, named)
