"""Renders a report for programs that put findings next to lines: editors, GitHub Actions, code scanning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from diagnostics.rules.registry import all_rules
from diagnostics.text.visible import visible

from .terminal import closing

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding

    from .contents import ReportContents

SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
GITHUB_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}


def as_concise(report: ReportContents) -> str:
    """Render one line per finding, as compilers do: ``train.py:31:5: error: The labels run … [rule]``."""
    lines = [
        f"{_place(report, finding)}: {finding.severity}: {_one_line(finding.message)} [{finding.rule}]"
        for finding in report.findings
    ]
    return "\n".join((*lines, *_closing(report)))


def as_github(report: ReportContents) -> str:
    """Render one workflow command per finding, which GitHub Actions shows next to its line.

    Source: docs.github.com, Workflow commands for GitHub Actions, "Setting an error message".
    """
    return "\n".join((*(_workflow_command(report, finding) for finding in report.findings), *_closing(report)))


def as_sarif(report: ReportContents) -> str:
    """Render as SARIF 2.1.0 (OASIS), which code scanning and editors read."""
    rules = list(dict.fromkeys(finding.rule for finding in report.findings))
    summaries = {rule.name: rule.summary() for rule in all_rules()}
    described = [{"id": rule, "shortDescription": {"text": summaries.get(rule, rule)}} for rule in rules]
    run = {
        "tool": {"driver": {"name": "diagnose", "rules": described}},
        "results": [_result(report, finding, rules.index(finding.rule)) for finding in report.findings],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _closing(report: ReportContents) -> Iterator[str]:
    """Return what the text says last: how many findings, or what "nothing found" rests on."""
    return (line.plain for line in closing(report))


def _place(report: ReportContents, finding: Finding) -> str:
    """Return ``file:line:column``, as far as known: the script, or what was examined if there is no script."""
    if (where := finding.where) is not None:
        return ":".join(map(str, filter(None, (visible(where.file), where.line, where.column))))
    return visible(report.script or report.title)


def _one_line(text: str) -> str:
    return " ".join(visible(text).split())


def _advice(finding: Finding) -> str:
    """Return message, fix and consequences, a line each."""
    lines = [visible(finding.message), f"fix: {visible(finding.fix)}"]
    lines += [f"or: {visible(other)}" for other in finding.alternatives]
    if finding.consequences:
        lines.append("It also explains: " + ", ".join(follows.rule for follows in finding.consequences))
    return "\n".join(lines)


def _workflow_command(report: ReportContents, finding: Finding) -> str:
    properties = {"title": finding.rule}
    file, line = _file_and_line(report, finding)
    if file is not None:
        where = finding.where
        column = {} if where is None or where.column is None else {"col": str(where.column)}
        properties = {"file": file, "line": str(line), **column, **properties}
    escaped = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{GITHUB_COMMANDS[finding.severity]} {escaped}::{_escaped(_advice(finding))}"


def _escaped(text: str, also: str = "") -> str:
    """Encode what would end a workflow command's property or message."""
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def _file_and_line(report: ReportContents, finding: Finding) -> tuple[str | None, int]:
    """Return a file with forward slashes, None if it is none (a notebook's cell), and the line; 1 if unknown."""
    file, line = (finding.where.file, finding.where.line) if finding.where else (report.script, 1)
    if file is None or not file.endswith((".py", ".ipynb")):  # `In[3]`, `<stdin>`, the name of a module
        return None, line
    return (PureWindowsPath(file) if "\\" in file else PurePath(file)).as_posix(), line


def _result(report: ReportContents, finding: Finding, index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": _advice(finding)},
    }
    file, line = _file_and_line(report, finding)
    if file is not None:
        path = PureWindowsPath(file) if file[1:2] == ":" else PurePath(file)
        uri = path.as_uri() if path.is_absolute() else quote(file)
        region = {"startLine": line} | _columns(finding)
        place = {"artifactLocation": {"uri": uri}, "region": region}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _columns(finding: Finding) -> dict[str, int]:
    """Return the rest of a region in SARIF, as far as it is known; its end is behind the last character."""
    where = finding.where
    if where is None or where.column is None or where.end_line is None or where.end_column is None:
        return {}
    return {"startColumn": where.column, "endLine": where.end_line, "endColumn": where.end_column}
