"""Puts together the folder that Jupyter Book reads: written pages, generated ones, and executed notebooks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode

from book.builder import chapter_pages, outline
from book.builder.chapter_pages import STUDENTS, TEACHERS
from book.builder.colab import Published, published
from book.builder.execution import Job
from book.builder.fair_copy import fair_copy
from book.builder.outline import Chapter
from book.builder.rendering import COPIES
from book.generated import pages, symptoms, teaching
from book.generated.curves import curves_in
from book.generated.llms import FOLDER, NAME, llms_txt
from book.generated.recall import recall_page
from book.generated.scoreboard import scoreboard_page
from bugs.zoo.keeper.catalogue import Exhibit
from bugs.zoo.learner.exercises import student_copy
from diagnostics.api.message_table import message_table
from diagnostics.rules.registry import all_rules
from tests.scoreboard.record import Record, load_tools

WRITTEN = ("_config.yml", "index.md", "habits.md", "paste.md", "report.md", "guide", "_static")
SHARED = (  # what every notebook's outcome depends on
    *("bugs/lab", "diagnostics", "constraints.txt"),
    *("book/builder/notebooks.py", "book/kernels.py", "book/panels.py", "book/pictures.py"),
    *("book/rank_recorder.py", "book/ranks.py", "book/recordings.py"),
    *(f"bugs/zoo/keeper/{name}.py" for name in ("catalogue", "manifest", "measurement", "recording", "verified")),
)
HERO = "hero"  # tag of a cell whose figure is on the landing page, with a link to the cell's page
SHOWS_REPORT = "report-page"  # tag of the cell whose output is the report on the landing page
REPORT_OF = 1  # the chapter it is taken from


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


def chapter_jobs(chapters: Sequence[Chapter], book: Path, zoo: Path, seed: int) -> list[Job]:
    """Return what is to be run for the chapters: the notebook of each, and the solution of its mystery.

    Raises:
        AssemblyError: a mystery has no solution.
    """
    shared = tuple(zoo / name for name in SHARED)
    made = []
    for chapter in chapters:
        cages = [place for cage in (*chapter.cages, *chapter.also) for place in sorted(zoo.glob(f"*s/{cage}_*"))]
        made.append(Job(book / f"{chapter.page}.md", (*shared, *cages), {"SEED": seed}))
        if chapter.mystery:
            solution, script = (book / "mysteries" / f"{chapter.mystery}.{kind}" for kind in ("md", "py"))
            if not solution.is_file():
                raise AssemblyError(f"no solution of {script.name}: expected book/mysteries/{solution.name}")
            made.append(Job(solution, (*shared, script), {"SEED": seed}))
    return made


def write_rules(exhibits: Sequence[Exhibit], folder: Path) -> int:
    """Write one page a rule, and their index, into `folder`; return how many rules there are."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    rules = all_rules()
    for rule in rules:
        (folder / f"{rule.name}.md").write_text(pages.rule_page(rule, exhibits), "utf-8")
    (folder / "index.md").write_text(pages.rules_index(rules), "utf-8")
    return len(rules)


def assemble(
    exhibits: Sequence[Exhibit],
    chapters: Sequence[Chapter],
    notebooks: Mapping[str, NotebookNode],
    book: Path,
    zoo: Path,
) -> Path:
    """Fill `book/_build/source` with everything that Jupyter Book needs, and return it.

    Args:
        exhibits: the catalogue.
        chapters: in their order.
        notebooks: executed, by the name of their source: of every exhibit, chapter and mystery.
        book: the folder of the book's sources.
        zoo: the root of the repository.

    Raises:
        AssemblyError: the report or a figure for the landing page is not where it should be.
        outline.OutlineError: an exhibit has no chapter, or two.
        symptoms.SymptomError: no notebook has noted the curve of a symptom.
        teaching.TeachingError: a cell's tag names no teaching point.
    """
    source = book / "_build" / "source"
    shutil.rmtree(source, ignore_errors=True)
    for folder in ("exhibits", "chapters", "mysteries", "_generated"):
        (source / folder).mkdir(parents=True)
    for name in (*WRITTEN, "rules"):
        origin = book / name
        (shutil.copytree if origin.is_dir() else shutil.copy)(origin, source / name)

    fair = {name: fair_copy(notebook, zoo) for name, notebook in notebooks.items()}
    homes = outline.homes(chapters, exhibits)
    in_order = outline.ordered(chapters, exhibits)
    for chapter in chapters:
        chapter_pages.set_title(fair[chapter.name], chapter.shown)
    for exhibit in in_order:
        chapter_pages.set_title(fair[exhibit.folder], outline.shown(exhibit))
    _write_exhibits(in_order, homes, fair, source / "exhibits", published(zoo / "book"))
    _write_chapters(chapters, exhibits, fair, source)
    _write_copies(source)
    for script in (book / "mysteries").glob("*.py"):
        shutil.copy(script, source / "mysteries")

    frame = yaml.safe_load((book / "_toc.yml").read_text("utf-8"))
    toc = outline.table_of_contents(frame, chapters, exhibits)
    (source / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False), "utf-8")
    teach = {chapter.page: fair[chapter.name] for chapter in chapters}
    teach |= {exhibit.page: fair[exhibit.folder] for exhibit in in_order}
    points = teaching.points(zoo / "book" / "teaching_points.toml")
    taught = teaching.places(teach, points)
    (source / "taught.md").write_text(teaching.taught_page(points, taught), "utf-8")

    seen = symptoms.load()
    curves = symptoms.curves_of(seen, {name: list(curves_in(notebook)) for name, notebook in notebooks.items()})
    links = symptoms.Links(exhibits, chapters, all_rules())
    (source / "symptoms.md").write_text(symptoms.symptoms_page(seen, links, curves), "utf-8")
    measured = json.loads((zoo / "tests" / "recall" / "measured.json").read_text("utf-8"))
    blind = json.loads((zoo / "tests" / "recall" / "blind.json").read_text("utf-8"))
    reports = json.loads((zoo / "tests" / "recall" / "blind_reports.json").read_text("utf-8"))
    (source / "recall.md").write_text(recall_page(measured, blind, reports), "utf-8")
    said = scoreboard_page(Record.read(), load_tools(), in_order, measured)
    (source / "scoreboard.md").write_text(said, "utf-8")
    (source / "_static" / "messages.json").write_text(json.dumps(message_table()), "utf-8")
    # Jupyter Book has every page load every script that it finds in _static; two pages ask for theirs themselves.
    scripts = source / FOLDER / "_static"
    scripts.mkdir(parents=True)
    for script in (source / "_static").glob("*.js"):
        script.rename(scripts / script.name)
    # The same for paste.md: a page that is opened from a file may load a script, and no JSON.
    (scripts / "messages.js").write_text(pages.messages_script(exhibits, message_table()), "utf-8")
    schema = zoo / "diagnostics" / "report" / "report.schema.json"
    shutil.copy(schema, source / "_static")
    for_reports = pages.rules_script(exhibits, all_rules(), json.loads(schema.read_text("utf-8")))
    (scripts / "rules.js").write_text(for_reports, "utf-8")
    generated = source / "_generated"
    (generated / "teacher.md").write_text(chapter_pages.teachers_links(chapters, in_order), "utf-8")
    (generated / "path.md").write_text(chapter_pages.path_cards(chapters, exhibits), "utf-8")
    counts = {c.name: _count(fair[c.name], chapter_pages.ANSWER) for c in chapters}
    (generated / "units.md").write_text(chapter_pages.units(chapters, exhibits, counts), "utf-8")
    (first,) = (chapter.name for chapter in chapters if chapter.number == REPORT_OF)
    (generated / "heroes.md").write_text(_heroes(chapters, in_order, fair, generated), "utf-8")
    (generated / "report.md").write_text(chapter_pages.raw(report_in(fair[first], first)), "utf-8")
    known = pages.in_a_line(exhibits) | {chapter.page: f"{chapter.purpose}." for chapter in chapters}
    (source / FOLDER / NAME).write_text(llms_txt(source, known), "utf-8")
    return source


def _write_exhibits(
    in_order: Sequence[Exhibit],
    homes: Mapping[str, Chapter],
    fair: Mapping[str, NotebookNode],
    folder: Path,
    where: Published | None,
) -> None:
    (folder / "index.md").write_text(chapter_pages.exhibits_index(in_order), "utf-8")
    for number, exhibit in enumerate(in_order):
        before = in_order[number - 1] if number else None
        after = in_order[number + 1] if number + 1 < len(in_order) else None
        page = chapter_pages.exhibit_notebook(
            fair[exhibit.folder], exhibit, homes[exhibit.id], before, after, where
        )
        nbformat.write(page, folder / f"{exhibit.folder}.ipynb")


def _write_chapters(
    chapters: Sequence[Chapter], exhibits: Sequence[Exhibit], fair: Mapping[str, NotebookNode], source: Path
) -> None:
    for chapter in chapters:
        page = chapter_pages.chapter_notebook(fair[chapter.name], chapter, chapters, exhibits)
        nbformat.write(page, source / chapter.file)
        if chapter.mystery:
            nbformat.write(fair[chapter.mystery], source / "mysteries" / f"{chapter.mystery}.ipynb")
    (source / "mysteries" / "index.md").write_text(chapter_pages.mysteries_index(chapters), "utf-8")


def _count(notebook: NotebookNode, tag: str) -> int:
    return sum(tag in cell.metadata.get("tags", []) for cell in notebook.cells)


def _write_copies(source: Path) -> None:
    """Write the notebooks that readers download: the student's without answers and outputs, and the teacher's."""
    for folder in ("chapters", "exhibits"):
        for page in sorted((source / folder).glob("*.ipynb")):
            whole = nbformat.read(page, as_version=4)
            for place, notebook in ((STUDENTS, student_copy(whole)), (TEACHERS, whole)):
                copied = source / (COPIES if place == STUDENTS else FOLDER) / place / folder / page.name
                copied.parent.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, copied)


def _heroes(
    chapters: Sequence[Chapter], in_order: Sequence[Exhibit], fair: Mapping[str, NotebookNode], folder: Path
) -> str:
    """Write the figures of the landing page into a folder, and return the cards that show them."""
    places = {chapter.name: (chapter.page, chapter.shown) for chapter in chapters}
    places |= {exhibit.folder: (exhibit.page, outline.shown(exhibit)) for exhibit in in_order}
    cards = []
    for name, (page, title) in places.items():
        for cell in fair[name].cells if name in fair else ():
            if HERO not in cell.metadata.get("tags", []):
                continue
            drawn = [o.data["image/svg+xml"] for o in cell.outputs if "image/svg+xml" in o.get("data", {})]
            if len(drawn) != 1:
                raise AssemblyError(f"{name}: a cell tagged {HERO!r} must show one figure, not {len(drawn)}")
            (folder / f"{name}.svg").write_text(drawn[0], "utf-8")
            words = cell.metadata["mystnb"]["image"]["alt"]
            cards.append(chapter_pages.hero_card(title, page, f"_generated/{name}.svg", words))
    return "\n".join(["::::{grid} 1 1 1 3", ":gutter: 3", "", *cards, "::::", ""])


def report_in(notebook: NotebookNode, name: str) -> str:
    """Return the HTML of the framed report that a notebook shows.

    Raises:
        AssemblyError: no cell of the notebook is tagged to show it, or that cell shows nothing.
    """
    shown = [
        output.data["text/html"]
        for cell in notebook.cells
        if SHOWS_REPORT in cell.metadata.get("tags", [])
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    if not shown:
        raise AssemblyError(
            f"{name}: the landing page shows its report, but no cell tagged {SHOWS_REPORT!r} has shown one"
        )
    return str(shown[0])
