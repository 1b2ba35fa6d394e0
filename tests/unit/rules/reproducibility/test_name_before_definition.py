import dataclasses

import pytest

from diagnostics.facts.notebook import CellPlace, MissingName, NotebookFacts
from diagnostics.facts.where import Where
from diagnostics.rules.reproducibility.name_before_definition import NameBeforeDefinition

RULE = NameBeforeDefinition()
READ = CellPlace(4, 9, 2)
DELETED_CELL = MissingName("optimizer", READ, ran=True)


def found(*missing):
    return RULE.from_notebook(NotebookFacts("train.ipynb", 8, 8, missing=missing))


def test_a_name_that_no_cell_defines_and_that_a_cell_has_read():
    finding = found(DELETED_CELL)
    assert finding.severity == "warning"
    assert finding.where == Where("train.ipynb, cell 4", 2, "<module>")
    assert finding.evidence == {"name": "optimizer", "cell": 4, "defined_in_cell": None, "others": []}


def test_a_name_that_is_defined_further_below_or_in_the_same_cell():
    below = dataclasses.replace(DELETED_CELL, defined=CellPlace(7, 3, 1), ran=False)
    finding = found(below)
    assert finding.severity == "warning"
    assert found(dataclasses.replace(below, defined=CellPlace(4, 9, 5))).severity == "warning"


def test_a_name_that_a_called_function_reads():
    finding = found(MissingName("loader", CellPlace(2, 4, 7), CellPlace(5, 6, 1), "evaluate", ran=True))
    assert finding.where == Where("train.ipynb, cell 2", 7, "evaluate")


def test_a_name_that_was_deleted():
    finding = found(dataclasses.replace(DELETED_CELL, deleted=CellPlace(3, 8, 1), ran=False))
    assert finding.severity == "warning"


def test_one_that_may_come_from_outside_is_a_note_and_stands_last():
    outside = MissingName("given", CellPlace(2, None, 1))
    assert found(outside).severity == "note"
    both = found(outside, DELETED_CELL)
    assert both.severity == "warning"


@pytest.mark.parametrize("facts", [NotebookFacts("train.ipynb", 0), NotebookFacts("train.ipynb", 8, 8)])
def test_is_silent_where_every_name_is_defined(facts):
    assert RULE.from_notebook(facts) is None
