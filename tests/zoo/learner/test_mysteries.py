"""A fix of a chapter's mystery passes, and the script as it is does not."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from bugs.zoo.learner.checking.pages import _asserted, check_mystery, launcher, names_read
from bugs.zoo.learner.exercises import bound_in, read

MYSTERIES = sorted((Path(__file__).resolve().parents[3] / "book" / "mysteries").glob("mystery_*.py"))
CHOSEN = [each for each in MYSTERIES if each.stem[-2:] in os.environ.get("MYSTERIES", each.stem[-2:])]


def our_fix(script: Path) -> str:
    """The text of our fix, from the page of the solution."""
    space = {"source": script.read_text("utf-8")}
    for cell in read(script.with_suffix(".md")).cells:
        if cell.cell_type != "code":
            continue
        for statement in ast.parse(cell.source).body:
            names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            if isinstance(statement, ast.Assign) and "script" not in names and "run" not in names:
                try:
                    exec(compile(ast.Module([statement], []), "solution", "exec"), space)
                except NameError:
                    continue
            if "fixed" in space:
                return space["fixed"]
    raise AssertionError(f"{script.stem}.md gives `fixed` no value at the top level of a cell")


@pytest.mark.parametrize("script", MYSTERIES, ids=lambda script: script.stem)
def test_the_solution_names_its_fix(script: Path) -> None:
    assert any(
        "fixed" in bound_in(c.source) for c in read(script.with_suffix(".md")).cells if c.cell_type == "code"
    )
    assert our_fix(script) != script.read_text("utf-8")


def test_a_script_of_two_ranks_is_launched_so() -> None:
    assert launcher("$ torchrun --nproc-per-node 2 -m diagnostics run mystery_15.py")[-3:] == [
        "--nproc-per-node",
        "2",
        "-m",
    ]
    assert launcher("$ diagnose run mystery_04.py") == ["-m"]


def test_the_variables_that_a_check_reads_are_named() -> None:
    found = {each.stem[-2:]: names_read(each.with_suffix(".md"), each) for each in MYSTERIES}
    assert found["11"] == ["final_loss", "lowest"]  # in the body of a loop
    assert found["03"] == ["forms", "rows"]
    assert found["05"] == []  # only what the script prints


ORIGINAL = "import math\nrows = [1]\nfor row in rows:\n    total = row\n"


def judged(problem: str, text: str = ORIGINAL) -> str:
    """What is said of one problem with a learner's script."""
    judgement = _asserted({"broken": {}, "problems": {"5": problem}}, text, ORIGINAL)
    assert not judgement.ok
    return f"{judgement.said} {judgement.advice}"


def test_a_failed_assertion_says_whose_results_its_names_hold() -> None:
    problem = "An assertion fails: float(after[-1]) > 0.9. `float(after[-1])` is 0.2"
    assert judged(problem) == (
        f"The solution's assertions do not all hold for your script. {problem}. (`after` is of your script.) "
        "The bug is still there, or your script no longer prints what the original does."
    )


@pytest.mark.parametrize(
    "problem",
    [
        "It raises KeyError: 'rows', in rows, forms = (variables['rows'], variables['forms'])",
        "An assertion fails: done.returncode == 0 (Traceback: NameError: name 'rows' is not defined)",
    ],
)
def test_a_fix_that_renames_a_variable_is_asked_for_its_name(problem: str) -> None:
    renamed = ORIGINAL.replace("rows", "kept")
    assert judged(problem, renamed) == (
        "The check reads `rows` of the original script, and your script does not define it. "
        "Keep the name `rows`; then the check can judge your fix."
    )


@pytest.mark.parametrize(
    "problem",
    [
        "It raises KeyError: 'labels', in labels = sound['batch']['labels']",
        "It raises AttributeError: 'float' object has no attribute 'item', in accuracy = sound['total'].item()",
    ],
    ids=["a key that is no variable", "another type"],
)
def test_a_result_that_cannot_be_read_is_not_called_a_bug(problem: str) -> None:
    assert judged(problem) == (
        f"The check could not judge your fix. {problem}. Keep the lines that the original prints, and the names "
        "and types of its variables."
    )


@pytest.mark.exhaustive
def test_a_right_fix_with_other_names_gets_a_true_sentence(tmp_path: Path) -> None:
    script = next(each for each in MYSTERIES if each.stem == "mystery_03")
    mine = tmp_path / script.name
    mine.write_text(our_fix(script).replace("rows", "kept"), "utf-8")
    (result,) = [each for each in check_mystery("m", script.with_suffix(".md"), mine).judgements if not each.ok]
    assert result.said.startswith("The check reads `rows` of the original script")


@pytest.mark.exhaustive
def test_less_padding_is_no_fix_of_reading_it(tmp_path: Path) -> None:
    script = next(each for each in MYSTERIES if each.stem == "mystery_05")
    mine = tmp_path / script.name
    mine.write_text(script.read_text("utf-8").replace("LENGTH = 40", "LENGTH = 12"), "utf-8")
    (wrong,) = [each for each in check_mystery("m", script.with_suffix(".md"), mine).judgements if not each.ok]
    assert "padded_accuracy" in wrong.said


@pytest.mark.exhaustive
@pytest.mark.parametrize("script", CHOSEN, ids=lambda script: script.stem)
def test_our_fix_passes_and_the_broken_script_does_not(script: Path, tmp_path: Path) -> None:
    """`MYSTERIES=04,12 pytest -m "" tests/zoo/learner/test_mysteries.py` takes some of them."""
    mine = tmp_path / script.name
    mine.write_text(our_fix(script), "utf-8")
    made = check_mystery("mystery", script.with_suffix(".md"), mine)
    assert made.passed, made.why_not
    assert set(made.to_dict()) == {
        *("kind", "id", "passed", "reservations", "why_not", "judgements", "rules", "metrics", "seconds"),
    }
    mine.write_text(script.read_text("utf-8"), "utf-8")
    assert not check_mystery("mystery", script.with_suffix(".md"), mine).passed
