"""The notebooks' sources keep to the order that the guide promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book.builder.notebooks import read_source
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue

ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue(ROOT)
SECTIONS = [
    "The symptom",
    "Reproduce it",
    "Guess first",
    "Walk the pipeline",
    "Let diagnostics do the same",
    "The cause",
    "The fix",
    "Recovery",
    "In your own project",
    "Exercises",
]

each_exhibit = pytest.mark.parametrize("exhibit", CATALOGUE.values(), ids=CATALOGUE)


@each_exhibit
class TestNotebookSource:
    def test_has_its_manifest_s_title_and_all_sections_in_order(self, exhibit: Exhibit) -> None:
        notebook = read_source(ROOT / "book" / f"{exhibit.page}.md")
        words = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert re.findall(r"^# (.+)", words, re.MULTILINE) == [exhibit.title]
        assert re.findall(r"^## (.+)", words, re.MULTILINE) == SECTIONS

    def test_opens_in_jupyter_wherever_it_is_put(self, exhibit: Exhibit) -> None:
        notebook = read_source(ROOT / "book" / f"{exhibit.page}.md")
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        assert "bugs.__file__" in code
        assert "../" not in code

    def test_follows_the_advice_on_globals(self, exhibit: Exhibit) -> None:
        notebook = read_source(ROOT / "book" / f"{exhibit.page}.md")
        code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
        assert not re.search(r"\bexec\(|\bglobals\(\)", code)

    def test_every_answer_is_folded(self, exhibit: Exhibit) -> None:
        text = (ROOT / "book" / f"{exhibit.page}.md").read_text()
        answers = re.findall(r"^:::\{admonition\} Answer\n(.*)", text, re.MULTILINE)
        assert len(answers) == len(re.findall(r"^\*\*\d\.\*\* ", text, re.MULTILINE)) >= 2
        assert set(answers) == {":class: dropdown"}

    def test_offers_causes_to_guess_from_before_its_hints(self, exhibit: Exhibit) -> None:
        notebook = read_source(ROOT / "book" / f"{exhibit.page}.md")
        code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
        assert code.index("panels.guesses(exhibit)") == code.index("panels.hints(exhibit)") - 1
        assert len({guess.guess for guess in exhibit.guesses}) == len(exhibit.guesses) >= 3
