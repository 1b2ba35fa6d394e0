import dataclasses

from diagnostics.facts.notebook import CalledValue, CellPlace, GlobalRead, NotebookFacts
from diagnostics.facts.where import Where
from diagnostics.rules.reproducibility.redefined_name import RedefinedName

RULE = RedefinedName()
CALLED = CalledValue("sum", CellPlace(5, 8, 3), CellPlace(2, 4, 1), "a number", "a built-in function")
CHANGED = GlobalRead(
    "score",
    CellPlace(3, 3, 1),
    "model",
    (CellPlace(1, 1, 2), CellPlace(4, 6, 1)),
    ("other", "loop variable"),
    (CellPlace(6, 7, 1),),
    differs=True,
    changes_kind=True,
)


def notebook(**known):
    return NotebookFacts("train.ipynb", 8, 8, **known)


def test_a_number_that_is_called():
    finding = RULE.from_notebook(notebook(called=(CALLED,), reads=(CHANGED,)))
    assert finding.severity == "warning"
    assert finding.where == Where("train.ipynb, cell 2", 1, "<module>")
    assert finding.evidence == {"name": "sum", "bound_in_cell": 2, "called_in_cell": 5}


def test_one_that_a_function_calls_and_others():
    other = dataclasses.replace(CALLED, name="list", value="a list")
    assert (
        RULE.from_notebook(notebook(called=(dataclasses.replace(CALLED, function="mean", was=""), other))).severity
        == "warning"
    )


def test_a_variable_that_becomes_a_loop_variable_is_a_note():
    finding = RULE.from_notebook(notebook(reads=(CHANGED,)))
    assert finding.severity == "note"


def test_is_silent_where_a_name_keeps_its_meaning():
    assert RULE.from_notebook(notebook()) is None
    assert RULE.from_notebook(notebook(reads=(dataclasses.replace(CHANGED, changes_kind=False),))) is None
