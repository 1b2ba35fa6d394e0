"""The chapters keep to what the first of them promises: a method, exercises with answers that run, a mystery."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

import pytest
from nbformat import NotebookNode, v4

from book.builder.chapter_pages import (
    LONG,
    chapter_notebook,
    mysteries_index,
    mystery_commands,
)
from book.builder.notebooks import read_source
from book.builder.outline import Chapter, load
from book.generated.pipeline_map import described, pipeline_map
from book.generated.teaching import TAG, TeachingError, places, points, taught_page
from bugs.zoo.keeper.catalogue import load_catalogue
from bugs.zoo.learner.exercises import ANSWER, EXERCISE
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).parents[3]
EXHIBITS = list(load_catalogue(ROOT).values())
CHAPTERS = load(ROOT / "book" / "chapters")
POINTS = points(ROOT / "book" / "teaching_points.toml")
SOURCES = {chapter.page: read_source(ROOT / "book" / f"{chapter.page}.md") for chapter in CHAPTERS} | {
    exhibit.page: read_source(ROOT / "book" / f"{exhibit.page}.md") for exhibit in EXHIBITS
}

each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda c: c.name)
each_mystery = pytest.mark.parametrize("mystery", [c.mystery for c in CHAPTERS if c.mystery])


def tags(cell: NotebookNode) -> list[str]:
    return list(cell.metadata.get("tags", []))


def code_of(notebook: NotebookNode) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


@each_chapter
class TestChapter:
    def test_says_what_it_costs_to_skip_it_and_ends_with_exercises(self, chapter: Chapter) -> None:
        words = "\n\n".join(cell.source for cell in SOURCES[chapter.page].cells if cell.cell_type == "markdown")
        headings = re.findall(r"^## (.+)", words, re.MULTILINE)
        assert headings[-1] == "Exercises"
        assert headings[-2].startswith("What it costs to skip")
        assert len(re.findall(r"^# ", words, re.MULTILINE)) == 1

    def test_every_exercise_has_a_starter_and_an_answer_that_checks_itself(self, chapter: Chapter) -> None:
        cells = SOURCES[chapter.page].cells
        numbers = [cell for cell in cells if re.search(r"^\*\*\d\.\*\* ", cell.source, re.MULTILINE)]
        answers = [place for place, cell in enumerate(cells) if ANSWER in tags(cell)]
        assert len(answers) == len(numbers) >= 2
        for place in answers:
            assert EXERCISE in tags(cells[place - 1])
            assert cells[place - 2] in numbers
            assert any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(cells[place].source)))

    def test_opens_in_jupyter_wherever_it_is_put(self, chapter: Chapter) -> None:
        assert "../" not in code_of(SOURCES[chapter.page])

    def test_follows_its_own_advice(self, chapter: Chapter) -> None:
        """No `exec`, and no reading of globals by name."""
        code = "\n".join(line for line in code_of(SOURCES[chapter.page]).splitlines() if not line.startswith("%"))
        named = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
        assert not named & {"exec", "eval", "globals"}

    def test_every_figure_has_words_for_those_who_do_not_see_it(self, chapter: Chapter) -> None:
        for cell in SOURCES[chapter.page].cells:
            draws = re.search(
                r"^(figure, .+ = plt\.subplots\(|draw\(|panels\.recovery)", cell.source, re.MULTILINE
            )
            if cell.cell_type == "code" and draws:
                assert cell.metadata["mystnb"]["image"]["alt"], cell.source


@each_chapter
class TestChapterPage:
    @pytest.fixture
    def page(self, chapter: Chapter) -> NotebookNode:
        return chapter_notebook(copy.deepcopy(SOURCES[chapter.page]), chapter, CHAPTERS, EXHIBITS)

    def test_opens_with_its_title_the_map_and_the_facts(self, page: NotebookNode, chapter: Chapter) -> None:
        title, picture, facts = page.cells[:3]
        assert title.source == f"# {chapter.title}"  # to be numbered
        assert described(chapter.stations) in picture.outputs[0].data["text/html"]
        assert f"**Time** {chapter.minutes} minutes. **Level** {chapter.level}." in facts.source

    def test_answers_are_folded(self, page: NotebookNode, chapter: Chapter) -> None:
        assert all("hide-cell" in tags(cell) for cell in page.cells if ANSWER in tags(cell))

    def test_links_its_cages_and_its_mystery(self, page: NotebookNode, chapter: Chapter) -> None:
        words = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
        assert all(f"](../{e.page}.ipynb)" in words for e in EXHIBITS if e.id in (*chapter.cages, *chapter.also))
        assert (f"(../mysteries/{chapter.mystery}.ipynb)" in words) == bool(chapter.mystery)


@each_mystery
class TestMystery:
    def test_does_not_give_itself_away(self, mystery: str) -> None:
        script = (ROOT / "book" / "mysteries" / f"{mystery}.py").read_text("utf-8")
        assert re.search(
            rf"\$ (python|torchrun --nproc-per-node \d) {mystery}\.py",
            ast.get_docstring(ast.parse(script)) or "",
        )
        assert 30 <= len(script.splitlines()) <= 75
        assert not [rule.name for rule in all_rules() if rule.name in script.replace("_", "-")]
        assert not re.search(r"\bbug\b|wrong|mistake|broken|fixme|todo", script, re.IGNORECASE)

    def test_its_solution_repairs_it_and_checks_that(self, mystery: str) -> None:
        code = code_of(read_source(ROOT / "book" / "mysteries" / f"{mystery}.md"))
        assert f"{mystery}.py" in code
        assert "source.replace(" in code
        assert re.search(r"report = panels\.diagnosed\(script.*\)\nassert .* in report", code)

    def test_is_looked_at_without_the_tool_first(self, mystery: str) -> None:
        plain, watched = mystery_commands(mystery)
        (chapter,) = (chapter for chapter in CHAPTERS if chapter.mystery == mystery)
        source = SOURCES[chapter.page]
        page = chapter_notebook(copy.deepcopy(source), chapter, CHAPTERS, EXHIBITS).cells[-1].source
        for text in (page, mysteries_index(CHAPTERS)):
            assert 0 < text.index("**Look, without the tool.**") < text.index("**Ask the tool.**")
            assert 0 < text.index(plain) < text.index(watched)
            assert text.index(f"{mystery}.ipynb") > text.index(watched)


def test_the_commands_of_a_mystery_for_two_processes_start_two() -> None:
    assert mystery_commands("mystery_14") == ("python mystery_14.py", "diagnose run mystery_14.py")
    assert mystery_commands("mystery_15") == (
        "torchrun --nproc-per-node 2 mystery_15.py",
        "torchrun --nproc-per-node 2 -m diagnostics run mystery_15.py",
    )


def test_the_report_does_not_decide_half_of_the_mysteries() -> None:
    """Their pages assert that it finds nothing, or that it finds what is not the cause."""
    names = [chapter.mystery for chapter in CHAPTERS if chapter.mystery]
    pages = {name: (ROOT / "book" / "mysteries" / f"{name}.md").read_text("utf-8") for name in names}
    undecided = {name for name, page in pages.items() if 'assert "Nothing found' in page}
    undecided.add("mystery_11")  # two causes are named
    assert len(undecided) >= len(names) // 2


class TestTeaching:
    def test_points_are_taught_or_marked_as_not_yet(self) -> None:
        where = places(SOURCES, POINTS)
        not_taught = {point.name for point in POINTS if not where[point.name]}
        assert not_taught == {point.name for point in POINTS if point.not_yet}

    def test_only_code_that_runs_can_teach(self) -> None:
        for page, notebook in SOURCES.items():
            for cell in notebook.cells:
                if any(tag.startswith(TAG) for tag in tags(cell)):
                    assert cell.cell_type == "code", page
                    assert cell.source.strip(), page

    def test_an_unknown_tag_is_named(self) -> None:
        notebook = copy.deepcopy(SOURCES[CHAPTERS[0].page])
        next(cell for cell in notebook.cells if cell.cell_type == "code").metadata["tags"] = ["teaches-juggling"]
        with pytest.raises(TeachingError, match="the tag 'teaches-juggling' names no point"):
            places({CHAPTERS[0].page: notebook}, POINTS)

    def test_the_page_links_what_is_taught_and_says_what_is_not(self) -> None:
        where = places(SOURCES, POINTS)
        page = taught_page(POINTS, where)
        for point in POINTS:
            (row,) = (line for line in page.splitlines() if line.startswith(f"| {point.point} |"))
            assert ("*not yet*" in row) == point.not_yet
            assert all(f"({place.page}.ipynb)" in row for place in where[point.name])


class TestPipelineMap:
    def test_lights_its_stations_and_says_so_in_words(self) -> None:
        drawn = pipeline_map(["loss", "batch"], {"loss": "06_forward.html"})
        assert drawn.count('class="station lit"') == 2
        assert "This page is about: batch, loss." in drawn
        assert '<a href="06_forward.html">' in drawn
        assert drawn.count("<rect") == 7


class TestLongOutputs:
    def test_are_folded_and_say_how_long_they_are(self) -> None:
        chapter = CHAPTERS[0]
        page = copy.deepcopy(SOURCES[chapter.page])
        code = [cell for cell in page.cells if cell.cell_type == "code" and not tags(cell)]
        for cell, lines in zip(code, (LONG, LONG + 1), strict=False):
            cell.outputs = [v4.new_output("stream", name="stdout", text="a line\n" * lines)]
        shown = [cell for cell in chapter_notebook(page, chapter, CHAPTERS, EXHIBITS).cells if cell.get("outputs")]
        short, long = (cell for cell in shown if "a line" in str(cell.outputs))
        assert "hide-output" not in tags(short)
        assert "hide-output" in tags(long)
        assert long.metadata["mystnb"]["code_prompt_show"] == f"Show the output, {LONG + 1} lines"
