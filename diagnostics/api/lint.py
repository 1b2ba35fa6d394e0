"""`lint`: finds bugs in the source of scripts, without running them."""

from __future__ import annotations

import ast
import bisect
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from diagnostics.collectors.notebook.file import code_cells
from diagnostics.collectors.notebook.magics import as_python
from diagnostics.collectors.source.read import module_of, patterns_in
from diagnostics.config import of_project
from diagnostics.engine.evaluate import Evaluator
from diagnostics.engine.finding import Finding
from diagnostics.errors import InvalidInput
from diagnostics.facts.written import WrittenPattern, WrittenPatterns
from diagnostics.report.contents import StageResult
from diagnostics.report.policy import Selection
from diagnostics.report.report import Report
from diagnostics.rules.registry import all_rules
from diagnostics.text.join import count_of

SUFFIXES = (".py", ".ipynb")
SKIPPED = ("__pycache__", "node_modules", "site-packages", "build", "dist")


@dataclass(frozen=True)
class Linted:
    """The result of `lint`.

    Attributes:
        report: with all findings, none of them grouped under another.
        lines: one per finding, by position: ``train.py:26:5: leaked-evaluation-rows `val_loader` is built from
            …``.
        unread: files that could not be read or parsed, and why.
    """

    report: Report
    lines: tuple[str, ...]
    unread: tuple[str, ...]


def lint(paths: Iterable[str | os.PathLike[str]]) -> Linted:
    """Look for known bugs in scripts, in notebooks, and in folders of both.

    Rules that need facts about the run, in addition to the source, are not evaluated.

    Raises:
        InvalidInput: a file is neither a script nor a notebook.
    """
    found: list[tuple[WrittenPattern, Finding]] = []
    faults: list[str] = []
    unread: list[str] = []
    files = [file for path in dict.fromkeys(paths) for file in _files(Path(path))]
    for file in files:
        try:
            patterns = list(_patterns(file))
        except InvalidInput as problem:
            unread.append(str(problem))
            continue
        for pattern in patterns:
            evaluator = Evaluator(all_rules(), taking=[WrittenPatterns])
            findings = [*evaluator.add(WrittenPatterns((pattern,))), *evaluator.close_phase()]
            found += [(pattern, finding) for finding in findings]
            faults += evaluator.faults
    policy, mistakes = of_project()
    selection = Selection(policy)
    kept = [(pattern, one) for pattern, finding in found for one in selection.kept([finding])]
    read = len(files) - len(unread)
    stages = [StageResult("source", "passed", count_of(read, "file"))] if read else []
    report = Report(
        title=f"read the source of {count_of(read, 'file')}",
        findings=tuple(finding for _, finding in kept),
        stages=(*stages, *(StageResult("source", "not judged", problem) for problem in unread)),
        ignored=selection.ignored,
        settings=(*mistakes, *selection.mistakes),
        faults=tuple(dict.fromkeys(faults)),
    )
    return Linted(report, tuple(_line(*one) for one in kept), tuple(unread))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if path.is_file() and path.suffix not in SUFFIXES:
            raise InvalidInput(f"{path} is neither a script (.py) nor a notebook (.ipynb).")
        return [path]
    found = []
    for folder, folders, names in os.walk(path):
        within = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
        folders[:] = sorted(name for name in within if not Path(folder, name, "pyvenv.cfg").exists())
        found += [Path(folder, name) for name in sorted(names) if name.endswith(SUFFIXES)]
    return found


def _patterns(file: Path) -> Iterator[WrittenPattern]:
    """Yield the patterns in a file, by their lines; those of a notebook with the cell in the name of the file."""
    with warnings.catch_warnings():  # of escapes in the user's strings
        warnings.simplefilter("ignore")
        tree, above = (module_of(file), []) if file.suffix == ".py" else _cells(file)
    try:
        found = sorted(patterns_in(tree, str(file)), key=lambda one: (one.where.line, one.column))
    except RecursionError:
        raise InvalidInput(f"{file} is nested too deeply to be read.") from None
    for pattern in found:
        if above:
            cell = bisect.bisect_left(above, pattern.where.line)
            line = pattern.where.line - above[cell - 1]
            where = replace(pattern.where, file=f"{file}:cell {cell}", line=line)
            yield replace(pattern, where=where)
        else:
            yield pattern


def _cells(path: Path) -> tuple[ast.Module, list[int]]:
    """Return the code cells of a notebook as one module, and the number of lines above each cell.

    Raises:
        InvalidInput: it cannot be read, or a cell cannot be parsed.
    """
    whole, above, lines = ast.Module([], []), list[int](), 0
    for cell in code_cells(path):
        python = as_python(cell.source)
        if python.problem:
            raise InvalidInput(f"{path} is not valid Python: cell {cell.number}, {python.problem}.")
        whole.body += ast.increment_lineno(python.tree, lines).body
        above.append(lines)
        lines += cell.source.count("\n") + 1
    return whole, above


def _line(pattern: WrittenPattern, finding: Finding) -> str:
    return f"{pattern.where.file}:{pattern.where.line}:{pattern.column}: {finding.rule} {finding.message}"
