"""Quotes the lines of the script that findings are about, as the script was when it ran."""

from __future__ import annotations

import functools
import linecache
import os
import sys
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

from diagnostics.engine.finding import CodeFrame, Finding

from .redaction import Redaction

if TYPE_CHECKING:
    from diagnostics.facts.where import Where

    from .report import Report

AROUND = 1  # lines of code before and after the one concerned


def with_code(report: Report, script: str | os.PathLike[str] | None, folder: str, since: float) -> Report:
    """Return a report whose findings quote their lines.

    Args:
        report: of a run of this process.
        script: its file, if it is one.
        folder: the working directory when the script started, from which its files are named.
        since: the time of its start. A file that was written later may hold other lines.
    """
    modules = (module for module in list(sys.modules.values()) if isinstance(module, ModuleType))
    loaded = [script, *(vars(module).get("__file__") for module in modules)]  # `getattr` may load a lazy one
    files = {os.fspath(file): None for file in loaded if isinstance(file, str | os.PathLike)}  # the script first
    shown = None if report.crash is None else report.crash.where  # with its code

    @functools.cache
    def has_run(path: str) -> bool:
        return path in files or any(os.path.realpath(file) == path for file in files)

    def quoted(finding: Finding) -> Finding:
        where = finding.where
        if where is None or (shown is not None and (where.file, where.line) == (shown.file, shown.line)):
            return finding
        path = os.path.realpath(os.path.join(folder, where.file))
        if not _is_older(path, since) or not has_run(path):
            return finding
        return replace(finding, code=code_frame(linecache.getlines(path), where))

    return replace(report, findings=tuple(map(quoted, report.findings)))


def code_frame(lines: list[str], where: Where) -> CodeFrame | None:
    """Return a line and those around it, without secrets and without common indentation.

    Args:
        lines: of the whole file.
        where: the line, and its columns if they are known.

    Returns:
        None if the file has no such line.
    """
    if not 0 < where.line <= len(lines):
        return None
    first = max(where.line - AROUND, 1)
    near = [line.rstrip().expandtabs() for line in lines[first - 1 : where.line + AROUND]]
    at = where.line - first
    indent = min((len(line) - len(line.lstrip()) for line in near if line), default=0)
    safe = [Redaction().secrets(line)[indent:] for line in near]
    mark = None
    plain = lines[where.line - 1]
    if where.column is not None and "\t" not in plain and safe[at] == near[at][indent:]:
        one_line = where.end_line == where.line and where.end_column is not None
        end = where.end_column if one_line and where.end_column is not None else len(near[at]) + 1
        mark = where.column - 1 - indent, end - 1 - indent
    return CodeFrame(first, tuple(safe), at, mark)


def _is_older(path: str, time: float) -> bool:
    try:
        return os.stat(path).st_mtime <= time
    except OSError:  # it is gone
        return False
