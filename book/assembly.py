"""Puts together the folder that Jupyter Book reads: written pages, generated ones, and executed notebooks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book import pages
from book.execution import Job
from book.fair_copy import fair_copy
from book.recall_page import recall_page
from bugs.keeper.catalogue import Exhibit
from diagnostics.api.message_table import message_table
from diagnostics.rules.registry import all_rules

WRITTEN = ("_config.yml", "_toc.yml", "index.md", "guide", "_static")
SHARED = (  # what every notebook's outcome depends on
    *("bugs/lab", "diagnostics", "book/panels.py", "book/recordings.py", "book/notebooks.py", "constraints.txt"),
    *(f"bugs/keeper/{name}.py" for name in ("catalogue", "manifest", "measurement", "recording", "verified")),
)
SHOWS_REPORT = "report"  # tag of the cell whose output is the report on the landing page
REPORT_OF = "04"  # the exhibit it is taken from


class AssemblyError(ValueError):
    """The parts do not make a book; `str()` says what is missing or too much."""


def jobs(exhibits: Sequence[Exhibit], sources: Path, zoo: Path, seed: int) -> list[Job]:
    """Return what is to be run: one notebook an exhibit, with all that its outcome depends on.

    Raises:
        AssemblyError: an exhibit has no notebook, or a notebook no exhibit.
    """
    there = {path.stem: path for path in sorted(sources.glob("*.md"))}
    folders = [exhibit.folder for exhibit in exhibits]
    if missing := [folder for folder in folders if folder not in there]:
        raise AssemblyError(f"no notebook for {', '.join(missing)}: expected book/exhibits/{missing[0]}.md")
    if extra := [name for name in there if name not in folders]:
        raise AssemblyError(f"no exhibit for book/exhibits/{extra[0]}.md: expected bugs/{extra[0]}/exhibit.toml")
    shared = [zoo / name for name in SHARED]
    return [Job(there[e.folder], (e.script.parent, e.solution.parent, *shared), {"SEED": seed}) for e in exhibits]


def write_rules(exhibits: Sequence[Exhibit], folder: Path) -> int:
    """Write one page a rule, and their index, into `folder`; return how many rules there are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    rules = all_rules()
    for rule in rules:
        (folder / f"{rule.name}.md").write_text(pages.rule_page(rule, exhibits), "utf-8")
    (folder / "index.md").write_text(pages.rules_index(rules), "utf-8")
    return len(rules)


def assemble(exhibits: Sequence[Exhibit], notebooks: Mapping[str, NotebookNode], book: Path, zoo: Path) -> Path:
    """Fill `book/_build/source` with everything that Jupyter Book needs, and return it.

    Raises:
        AssemblyError: the report for the landing page is not where it should be.
    """
    source = book / "_build" / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for name in (*WRITTEN, "rules"):
        origin = book / name
        (shutil.copytree if origin.is_dir() else shutil.copy)(origin, source / name)

    (source / "exhibits").mkdir()
    (source / "exhibits" / "index.md").write_text(pages.exhibits_index(exhibits), "utf-8")
    fair = {name: fair_copy(notebook, zoo) for name, notebook in notebooks.items()}
    for name, notebook in fair.items():
        nbformat.write(notebook, source / "exhibits" / f"{name}.ipynb")

    (source / "symptoms.md").write_text(pages.symptoms_page(exhibits), "utf-8")
    measured = json.loads((zoo / "tests" / "recall" / "measured.json").read_text("utf-8"))
    (source / "recall.md").write_text(recall_page(measured), "utf-8")
    # For a page that names the rule of a message in the reader's browser.
    (source / "_static" / "messages.json").write_text(json.dumps(message_table()), "utf-8")
    shutil.copy(zoo / "diagnostics" / "report" / "report.schema.json", source / "_static")
    generated = source / "_generated"
    generated.mkdir()
    (generated / "cages.md").write_text(pages.cards(exhibits), "utf-8")
    (chosen,) = (exhibit.folder for exhibit in exhibits if exhibit.id == REPORT_OF)
    (generated / "report.md").write_text(pages.terminal(report_in(fair[chosen], chosen)), "utf-8")
    return source


def report_in(notebook: NotebookNode, name: str) -> str:
    """Return the text of the report that a notebook prints.

    Raises:
        AssemblyError: no cell of the notebook is tagged to hold it, or that cell prints nothing.
    """
    printed = [
        output.text
        for cell in notebook.cells
        if SHOWS_REPORT in cell.metadata.get("tags", [])
        for output in cell.outputs
        if output.get("name") == "stdout"
    ]
    if not (report := "".join(printed).strip("\n")):
        raise AssemblyError(
            f"{name}: the landing page shows its report, but no cell tagged {SHOWS_REPORT!r} has printed one"
        )
    return report
