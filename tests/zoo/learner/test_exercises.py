"""A chapter's exercises: the learner's copy gives nothing away, and a check takes right answers and no others."""

from __future__ import annotations

import ast
import copy
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from bugs.zoo.learner import exercises
from bugs.zoo.learner.checking.pages import check_chapter
from bugs.zoo.learner.checking.result import Check

CHAPTERS = sorted((Path(__file__).resolve().parents[3] / "book" / "chapters").glob("[0-9]*.md"))
CHOSEN = [chapter for chapter in CHAPTERS if chapter.stem[:2] in os.environ.get("CHAPTERS", chapter.stem[:2])]
OPEN = {"18_ask_well": {1}}  # exercises that no program can check
SMALL = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# 5 · Halves

```{code-cell} ipython3
import math

numbers = [1, 2, 3]
```

## Exercises

**1.** Write `half`.

```{code-cell} ipython3
:tags: [exercise]

def half(number):
    return ...
```

```{code-cell} ipython3
:tags: [answer]

def half(number):
    return number / 2


def doubled(number):
    return 2 * half(number)


print([doubled(number) for number in numbers])
assert half(3) == 1.5
```

Half of an odd number is not whole.

**2.** Is 3 even?

```{code-cell} ipython3
:tags: [exercise]

is_even = ...
```

```{code-cell} ipython3
:tags: [answer]

is_even = False
assert is_even == (doubled(3) % 4 == 0)
```
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    source = tmp_path / "05_halves.md"
    source.write_text(SMALL)
    return source


def solved(source: Path, answers: dict[int, str] | None = None) -> Any:
    """A learner's notebook in which the starters are replaced: by our answers' values, or by other cells."""
    notebook = nbformat.reads(exercises.dealt(source), as_version=4)
    by_id = {cell.id: cell for cell in notebook.cells}
    for exercise in exercises.exercises(exercises.read(source)):
        cell = by_id[f"exercise-{exercise.number}"]
        if answers is not None:
            cell.source = answers.get(exercise.number, cell.source)
            continue
        kept = [s for s in ast.parse(exercise.starter).body if not exercises.bound_by(s) & exercise.names]
        ours = [s for s in ast.parse(exercise.answer).body if not isinstance(s, ast.Assert | ast.Expr)]
        cell.source = ast.unparse(ast.Module([*kept, *ours], []))
    return notebook


def checked(source: Path, notebook: Any, folder: Path) -> Check:
    file = folder / "mine.ipynb"
    nbformat.write(notebook, file)
    return check_chapter("chapter-05", source, file)


def said(made: Check) -> dict[str, tuple[bool, str]]:
    return {each.name: (each.ok, each.said) for each in made.judgements}


class TestTheLearnersCopy:
    @pytest.mark.parametrize("source", CHAPTERS, ids=lambda source: source.stem)
    def test_it_holds_no_answer_and_no_output(self, source: Path) -> None:
        notebook = nbformat.reads(exercises.dealt(source), as_version=4)
        nbformat.validate(notebook)
        text = "\n".join(cell.source for cell in notebook.cells)
        for exercise in exercises.exercises(exercises.read(source)):
            assert exercise.answer not in text
            assert exercise.starter in text
        for cell in notebook.cells:
            assert not cell.get("outputs")
            assert exercises.ANSWER not in exercises.tags(cell)

    def test_the_text_about_an_answer_is_left_out_and_the_next_exercise_is_not(self, small: Path) -> None:
        notebook = nbformat.reads(exercises.dealt(small), as_version=4)
        text = "\n".join(cell.source for cell in notebook.cells)
        assert "Half of an odd number" not in text
        assert "**2.** Is 3 even?" in text

    def test_it_is_the_same_every_time(self, small: Path) -> None:
        assert exercises.dealt(small) == exercises.dealt(small)

    def test_folded_answers_of_an_exhibit_are_left_out(self) -> None:
        text = "**1.** Why?\n\n:::{admonition} Answer\n:class: dropdown\nBecause.\n:::\n\n**2.** When?"
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        (cell,) = exercises.student_copy(notebook).cells
        assert "Because" not in cell.source
        assert cell.source.startswith("**1.** Why?")
        assert cell.source.endswith("**2.** When?")

    def test_links_to_other_pages_become_text(self) -> None:
        text = "See [the next one](06_x.ipynb), ![this](a.svg), [torch](https://pytorch.org) and [below](#end)."
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        (cell,) = exercises.student_copy(notebook).cells
        assert cell.source == text.replace("[the next one](06_x.ipynb)", "the next one")


class TestTheCheck:
    def test_right_answers_pass(self, small: Path, tmp_path: Path) -> None:
        made = checked(small, solved(small), tmp_path)
        assert made.passed, made.judgements
        assert (made.kind, made.reservations) == ("chapter", ())

    def test_an_untouched_copy_says_what_was_not_tried(self, small: Path, tmp_path: Path) -> None:
        made = checked(small, solved(small, {}), tmp_path)
        assert said(made) == {"exercise 1": (False, "Not tried yet."), "exercise 2": (False, "Not tried yet.")}
        assert made.seconds == 0  # nothing was run

    def test_cells_behind_the_last_exercise_that_was_tried_are_not_run(self, small: Path, tmp_path: Path) -> None:
        small.write_text(SMALL.replace("is_even = ...", "is_even = undefined"), "utf-8")
        made = checked(small, solved(small, {1: "def half(number):\n    return number / 2"}), tmp_path)
        assert {name: ok for name, (ok, _) in said(made).items()} == {"exercise 1": True, "exercise 2": False}

    def test_a_wrong_answer_is_told_what_does_not_hold_and_the_next_is_checked(
        self, small: Path, tmp_path: Path
    ) -> None:
        answers = {1: "def half(number):\n    return number // 2", 2: "is_even = False"}
        made = checked(small, solved(small, answers), tmp_path)
        assert said(made)["exercise 1"] == (False, "An assertion fails: half(3) == 1.5. `half(3)` is 1.")
        assert made.why_not[0].endswith("Look at `half`.")

    @pytest.mark.parametrize(
        ("assertion", "told"),
        [
            ("2 > half(4) > half(3)", "half(4) > half(3). `half(4)` is 1. `half(3)` is 1."),
            ("half(4) == 1 and 1 < half(3)", "1 < half(3). `half(3)` is 1."),
            ("half(4) == 1 and not half(3)", "half(4) == 1 and (not half(3))."),
            ("half(4) == 2, 'Half of 4 is 2.'", "half(4) == 2 (Half of 4 is 2.). `half(4)` is 1."),
        ],
    )
    def test_of_several_comparisons_the_one_that_fails_is_shown(
        self, small: Path, tmp_path: Path, assertion: str, told: str
    ) -> None:
        small.write_text(SMALL.replace("assert half(3) == 1.5", f"assert {assertion}"), "utf-8")
        made = checked(
            small, solved(small, {1: "def half(number):\n    return 1", 2: "is_even = False"}), tmp_path
        )
        assert said(made)["exercise 1"] == (False, f"An assertion fails: {told}")

    def test_a_wrong_value_is_shown_and_the_right_names_are_not_suspected(
        self, small: Path, tmp_path: Path
    ) -> None:
        text = SMALL.replace("    return ...\n", "    return ...\n\n\nhalves = ...\n").replace(
            "assert half(3) == 1.5", "halves = [0.5, 1.0, 1.5]\nassert halves == [half(n) for n in numbers]"
        )
        small.write_text(text, "utf-8")
        mine = {1: "halves = [0, 1, 1]\ndef half(number):\n    return number / 2", 2: "is_even = False"}
        made = checked(small, solved(small, mine), tmp_path)
        shown = ". `halves` is [0, 1, 1]. `[half(n) for n in numbers]` is [0.5, 1.0, 1.5]."
        assert said(made)["exercise 1"][1].endswith(shown)
        assert made.why_not[0].endswith("Look at `half` and `halves`.")
        small.write_text(text.replace("[half(n) for n in numbers]", "[0.5, 1.0, 1.5]"), "utf-8")
        assert checked(small, solved(small, mine), tmp_path).why_not[0].endswith("Look at `halves`.")

    def test_cells_that_the_learner_adds_are_run_before_the_assertions(self, small: Path, tmp_path: Path) -> None:
        notebook = solved(small, {1: "by = 2", 2: "is_even = False"})
        place = next(n for n, cell in enumerate(notebook.cells) if cell.id == "exercise-1")
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell("def half(number):\n    return number / by"))
        assert checked(small, notebook, tmp_path).passed

    def test_a_cell_that_fails_is_named(self, small: Path, tmp_path: Path) -> None:
        notebook = solved(small)
        notebook.cells[1].source = "numbers = undefined"
        assert said(checked(small, notebook, tmp_path))["notebook"] == (
            False,
            "The cell that begins with `numbers = undefined` fails: NameError: name 'undefined' is not defined.",
        )

    def test_an_exercise_whose_cell_is_gone(self, small: Path, tmp_path: Path) -> None:
        notebook = copy.deepcopy(solved(small))
        notebook.cells = [cell for cell in notebook.cells if cell.id != "exercise-2"]
        assert said(checked(small, notebook, tmp_path))["exercise 2"][0] is False

    def test_a_file_that_is_no_notebook(self, small: Path, tmp_path: Path) -> None:
        file = tmp_path / "mine.ipynb"
        file.write_text("{}")
        with pytest.raises(ValueError, match=r"mine\.ipynb is not a notebook that can be read"):
            check_chapter("chapter-05", small, file)


@pytest.mark.parametrize("source", CHOSEN, ids=lambda source: source.stem)
def test_every_answer_asserts_something_of_the_learners(source: Path) -> None:
    for exercise in exercises.exercises(exercises.read(source)):
        given = exercise.names
        rest = [s for s in ast.parse(exercise.answer).body if not exercises.bound_by(s) & given]
        used = {node.id for s in rest for node in ast.walk(s) if isinstance(node, ast.Name)}
        assert exercise.is_checked == (exercise.number not in OPEN.get(source.stem, ()))
        assert not exercise.is_checked or given & used, (source.stem, exercise.number)


@pytest.mark.exhaustive
@pytest.mark.parametrize("source", CHOSEN, ids=lambda source: source.stem)
def test_our_answers_pass_and_the_starters_do_not(source: Path, tmp_path: Path) -> None:
    """`CHAPTERS=05,08 pytest -m "" tests/zoo/learner/test_exercises.py` takes some of the chapters."""
    made = checked(source, solved(source), tmp_path)
    assert made.passed, made.why_not
    ours = exercises.exercises(exercises.read(source))
    touched = {each.number: f"{each.starter}\n# tried" for each in ours if each.is_checked}
    wrong = said(checked(source, solved(source, touched), tmp_path))
    passing = [number for number in touched if wrong[f"exercise {number}"][0]]
    assert passing == []
