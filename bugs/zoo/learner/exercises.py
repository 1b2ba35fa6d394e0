"""The exercises of a chapter: the copy of its notebook that a learner works in, and how an answer checks it.

An exercise is a cell tagged `exercise`, the starter, which gives names a first value, and a cell tagged `answer`,
which gives them the right value and asserts what must hold. A check leaves out what gives these names
their value in the answer, and runs the rest with the values of the learner.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ANSWER, EXERCISE = "answer", "exercise"  # tags of an exercise's two cells
ID = "exercise-{}"  # of the starter's cell, in the learner's copy
# Cells that only the page needs: papermill's, and the map of the pipeline.
OF_THE_PAGE = {"injected-parameters"}
MAP = "chapter-map"
NEXT = re.compile(r"^(\*\*\d+\.\*\*|#+ )", re.MULTILINE)  # where the text about an answer ends
LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((?!https?:|#)[^()\s]+\)")  # to a page or file of the book
FOLDED = re.compile(r"^(:{3,})\{admonition\} Answer\n:class: dropdown\n.*?^\1[ ]*\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        number: from 1.
        starter: the source of its first cell.
        answer: that of the other.
    """

    number: int
    starter: str
    answer: str

    @property
    def names(self) -> set[str]:
        """The names that the learner gives a value: those that both cells bind."""
        return bound_in(self.starter) & bound_in(self.answer)

    @property
    def is_checked(self) -> bool:
        """Whether the answer's assertions look at anything of the learner's."""
        return bool(self.names) and any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(self.answer)))


def read(source: Path) -> Any:
    """Read a chapter's source as a notebook."""
    import jupytext

    return jupytext.read(source)


def exercises(notebook: Any) -> list[Exercise]:
    """Return the exercises of a chapter, in their order."""
    starters = [cell.source for cell in notebook.cells if EXERCISE in tags(cell)]
    answers = [cell.source for cell in notebook.cells if ANSWER in tags(cell)]
    pairs = zip(starters, answers, strict=True)
    return [Exercise(number, *pair) for number, pair in enumerate(pairs, start=1)]


def student_copy(notebook: Any) -> Any:
    """Return a copy of a notebook without answers, the text about them, outputs and links to other pages."""
    made = copy.deepcopy(notebook)
    made.cells = []
    numbers, is_after_answer = iter(range(1, len(notebook.cells) + 1)), False
    for place, cell in enumerate(copy.deepcopy(notebook.cells)):
        if ANSWER in tags(cell):
            is_after_answer = True
            continue
        if not OF_THE_PAGE.isdisjoint(tags(cell)) or cell.get("id") == MAP:
            continue
        if cell.cell_type == "markdown":
            # A copy has no other pages beside it.
            cell.source = LINK.sub(r"\1", FOLDED.sub("", cell.source)).strip()
            if is_after_answer:
                cell.source = _from_next(cell.source)
            if not cell.source:
                continue
        else:
            cell.outputs, cell.execution_count = [], None
        is_after_answer = False
        # Ids that do not change: a random one would make every build look new.
        cell.id = ID.format(next(numbers)) if EXERCISE in tags(cell) else f"cell-{place}"
        made.cells.append(cell)
    made.metadata.pop("chapter", None)
    return made


def dealt(source: Path) -> str:
    """Return the text of the notebook that a learner works in."""
    import nbformat

    made = student_copy(read(source))
    made.metadata.pop("jupytext", None)
    made.nbformat, made.nbformat_minor = 4, 5  # the first that has ids
    return str(nbformat.writes(made)) + "\n"


def steps(theirs: Any, ours: Sequence[Exercise]) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return what a check runs, in order: the learner's cells, and behind those of each exercise its assertions.

    Returns:
        The steps, for `bugs.zoo.learner.checking.cells`; and by the exercise's number why it is not checked.
    """
    made: list[dict[str, Any]] = []
    starters = {ID.format(exercise.number): exercise for exercise in ours}
    unseen, why_not, current = dict(starters), dict[int, str](), None
    mine: list[str] = []

    def assert_current() -> None:
        if current is None:
            return
        if "\n".join(mine).strip() == current.starter.strip():
            why_not[current.number] = "not tried yet"
        made.append(
            {
                "exercise": current.number,
                "source": current.answer,
                "given": sorted(current.names) if current.number not in why_not else [],
            }
        )

    for number, cell in enumerate(theirs.cells, start=1):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        if (found := unseen.pop(cell.get("id", ""), None)) is not None:
            assert_current()
            current, mine = found, []
        mine.append(cell.source)
        made.append({"cell": number, "source": cell.source, "may_raise": "raises-exception" in tags(cell)})
    assert_current()
    for exercise in unseen.values():
        why_not[exercise.number] = "its cell is gone from your notebook"
    return made, why_not


def bound_in(source: str) -> set[str]:
    """Return the names that a cell's own statements give a value: not those within its functions."""
    return {name for statement in ast.parse(source).body for name in bound_by(statement)}


def bound_by(statement: ast.stmt) -> set[str]:
    """Return the names that one statement gives a value, except those of a loop."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return set(_names(targets))
    return set()


def _names(targets: Sequence[ast.expr]) -> Iterator[str]:
    for target in targets:
        yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def tags(cell: Any) -> list[str]:
    """Return a cell's tags."""
    return list(cell.metadata.get("tags", []))


def _from_next(text: str) -> str:
    """Return a text from the next exercise or heading on."""
    found = NEXT.search(text)
    return text[found.start() :] if found else ""
