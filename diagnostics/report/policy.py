"""Applies what a project has decided about its reports: ignored rules, other severities, and a baseline."""

from __future__ import annotations

import contextlib
import fnmatch
import linecache
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from diagnostics.engine.finding import SEVERITIES, Finding, Severity
from diagnostics.facts.where import Where
from diagnostics.rules.registry import names_without_rule

Level = Severity | Literal["off"]

OFF: Final = "its severity is off"
INLINE: Final = re.compile(r"#\s*diagnose:\s*ignore\[(?P<rules>[^]#]*)\](?P<reason>[^#]*)")
"""A comment on the line that a finding names: ``# diagnose: ignore[dead-units] a sparse model``."""


@dataclass(frozen=True)
class Policy:
    """What becomes of findings, and whether reports show rows of the data.

    Attributes:
        ignores: ignored rules, each with the reason.
        levels: the severity to report, by rule; ``off`` ignores it.
        fail_on: the lowest severity that makes a run fail; None if it is not set.
        overrides: the globs of files and what holds for them instead; the last one that matches counts.
        folder: that the globs begin in.
        script: the file that findings without a line belong to; None if it is not a file.
        baseline: findings that were known before; the worst severity by rule and file.
        show_batch: whether reports show the first batches.
    """

    ignores: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Level] = field(default_factory=dict)
    fail_on: str | None = None
    overrides: tuple[tuple[tuple[str, ...], Policy], ...] = ()
    folder: Path | None = None
    script: str | None = None
    baseline: Mapping[tuple[str, str | None], Severity] = field(default_factory=dict)
    show_batch: bool = True

    def of_file(self, file: str | None) -> Policy:
        """Return what holds for a file, without overrides."""
        chosen = replace(self, overrides=())
        for globs, other in self.overrides if file is not None else ():
            if any(_matches(glob, file, self.folder) for glob in globs if file is not None):
                chosen = replace(
                    chosen,
                    ignores={**chosen.ignores, **other.ignores},
                    levels={**chosen.levels, **other.levels},
                    fail_on=other.fail_on or chosen.fail_on,
                )
        return chosen

    def ignoring(self, ignores: Mapping[str, str]) -> Policy:
        """Return the same with more ignored rules."""
        return replace(self, ignores={**self.ignores, **ignores})

    def knows(self, finding: Finding) -> bool:
        """Whether the baseline holds a finding of this rule and file, at least as bad."""
        file = None if finding.where is None else finding.where.file
        return any(
            rule == finding.rule
            and (file is None or other is None or file == other)
            and SEVERITIES.index(severity) <= SEVERITIES.index(finding.severity)
            for (rule, other), severity in self.baseline.items()
        )


class Selection:
    """Applies a policy to the findings of one report.

    Attributes:
        found: all rules that it was given.
        ignored: rule to reason, of those left out.
        known: the rules of findings that are in the baseline, each once.
        mistakes: in comments.
    """

    def __init__(self, policy: Policy) -> None:
        """Start without findings."""
        self._policy = policy
        self.found: set[str] = set()
        self.ignored: dict[str, str] = {}
        self.known: dict[str, None] = {}
        self.mistakes: dict[str, None] = {}

    def kept(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings to report, with the severities of the policy."""
        return [one for finding in findings for one in self._kept(finding)]

    @property
    def fields(self) -> dict[str, Any]:
        """What a report says of those left out."""
        return {"ignored": self.ignored, "known": tuple(self.known), "settings": tuple(self.mistakes)}

    @property
    def in_vain(self) -> tuple[str, ...]:
        """The ignored rules that no finding had."""
        return tuple(sorted(set(self._policy.ignores) - self.found))

    def _kept(self, finding: Finding) -> Iterator[Finding]:
        rule = finding.rule
        self.found.add(rule)
        policy = self._policy.of_file(self._policy.script if finding.where is None else finding.where.file)
        reason = policy.ignores.get(rule)
        if reason is None and finding.where is not None:
            reason = self._reason_beside(finding.where, rule)
        level = policy.levels.get(rule, finding.severity)
        if reason is not None or level == "off":
            self.ignored[rule] = OFF if reason is None else reason
            return
        finding = finding if level == finding.severity else replace(finding, severity=level)
        if policy.knows(finding):
            self.known[rule] = None
        else:
            yield finding

    def _reason_beside(self, where: Where, rule: str) -> str | None:
        """Return the reason of a comment that ignores a rule on this line; None without such a comment."""
        found = INLINE.search(linecache.getline(where.file, where.line)) if where.file.endswith(".py") else None
        if found is None:
            return None
        names = [name.strip() for name in found["rules"].split(",") if name.strip()]
        place = f"the comment in {where.file}:{where.line}"
        self.mistakes |= dict.fromkeys(names_without_rule(names, place))
        return (found["reason"].strip() or f"by {place}") if rule in names else None


def baseline_of(written: Mapping[str, Any]) -> dict[tuple[str, str | None], Severity]:
    """Return the findings of a JSON report, also those that follow from others, as `Policy.baseline` holds them.

    Raises:
        KeyError, TypeError: it has another layout.
    """
    found: dict[tuple[str, str | None], Severity] = {}
    waiting = list(written["findings"])
    while waiting:
        one = waiting.pop()
        waiting += one["consequences"]
        key = one["rule"], one["where"] and one["where"]["file"]
        found[key] = min(found.get(key, "note"), one["severity"], key=SEVERITIES.index)
    return found


def _matches(glob: str, file: str, folder: Path | None) -> bool:
    path = Path(file)
    with contextlib.suppress(ValueError, OSError):  # elsewhere, or the working directory is gone
        path = path.absolute().relative_to(folder or Path.cwd())
    return any(fnmatch.fnmatchcase(path.as_posix(), form) for form in (glob, glob.removeprefix("**/")))
