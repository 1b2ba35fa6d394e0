"""`check_notebook`: finds what would change if a notebook were run from top to bottom."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from diagnostics.errors import InvalidInput, what
from diagnostics.report.contents import StageResult
from diagnostics.report.report import Report
from diagnostics.text.join import count_of, listed

if TYPE_CHECKING:
    from diagnostics.facts.notebook import NotebookFacts

NAMED = 5  # cells that could not be read


def check_notebook(path: str | os.PathLike[str]) -> Report:
    """Report what a notebook file shows about its state: names from deleted cells, cells run out of order.

    Nothing is run, and no kernel is needed: only the code of the cells and the numbers of their last runs are
    read. A warning means that the notebook fails when it is run from top to bottom; everything else is a note.

        print(diagnostics.check_notebook("train.ipynb"))

    Args:
        path: a Python notebook in format 4 (`.ipynb`).

    Raises:
        InvalidInput: the file cannot be read, or is not such a notebook.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"check_notebook() was given {what(path)}. It takes the path of a notebook.")
    from diagnostics.collectors.notebook.facts import notebook_facts
    from diagnostics.engine.evaluate import Evaluator
    from diagnostics.facts.notebook import NotebookFacts
    from diagnostics.report.build import evaluated, finished
    from diagnostics.rules.registry import all_rules

    facts = notebook_facts(Path(path))
    evaluator = Evaluator(all_rules(), taking=[NotebookFacts])
    findings = [*evaluator.add(facts), *evaluator.close_phase()]
    title = f"checked {facts.file}, {count_of(facts.cells, 'code cell')}"
    return finished(evaluated(title, evaluator, findings, [NotebookFacts], stages=tuple(_stages(facts))))


def _stages(facts: NotebookFacts) -> list[StageResult]:
    read = facts.cells - len(facts.unread)
    problems = [f"cell {number}, {problem}" for number, problem in facts.unread]
    names = f"of {count_of(read, 'cell')}"
    if problems:
        names += f"; not Python: {listed(problems, most=NAMED)}; names after it are not judged"
    if not facts.run:
        order = StageResult("order of runs", "not judged", "no cell has the number of a run")
    else:
        others = max(0, facts.last_count - facts.run)
        again = f"; {count_of(others, 'other run')}: of cells run again, deleted or changed" if others else ""
        seen = f"{facts.run} of {count_of(facts.cells, 'cell')} run, up to In[{facts.last_count}]{again}"
        order = StageResult("order of runs", "passed", seen)
    return [StageResult("names", "passed" if read or not facts.cells else "not judged", names), order]
