"""Puts last what a pasted text shows to have been done already, such as a setting that is on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from diagnostics.engine.finding import Finding

_SETTING = re.compile(r"\b(?:[A-Z][A-Z0-9_]{5,40}=[\w.:-]{1,40}|[a-z_]{5,40}=(?:True|False|None|\d{1,9})\b)")
_ADVICE = re.compile(
    r"consider|\btry|passing|please|hint|should|need to|suggest|by (?:setting|adding)|you can", re.IGNORECASE
)
"""Lines that only recommend a setting: they are the library's own words."""


def done_last(finding: Finding, text: str) -> Finding:
    """Return the finding with the fixes last whose setting occurs in the text, outside of advice."""
    fixes = (finding.fix, *finding.alternatives)
    lines = [line for line in text.splitlines() if not _ADVICE.search(line)]
    ordered = sorted(fixes, key=lambda fix: any(setting in line for setting in _settings(fix) for line in lines))
    return replace(finding, fix=ordered[0], alternatives=tuple(ordered[1:]))


def _settings(fix: str) -> Iterator[str]:
    return (found[0] for found in _SETTING.finditer(fix))
