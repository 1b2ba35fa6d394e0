import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.notebook import CellPlace, NotebookFacts, Reordered
from diagnostics.facts.where import Where
from diagnostics.rules.reproducibility.cells_out_of_order import CellsOutOfOrder

RULE = CellsOutOfOrder()
STALE = Reordered("lr", CellPlace(4, 6, 2), None, CellPlace(1, 9, 3))
SHADOWED = Reordered("model", CellPlace(2, 7, 1), CellPlace(5, 4, 1), CellPlace(1, 1, 1))


def found(*reordered):
    return RULE.from_notebook(NotebookFacts("train.ipynb", 8, 8, reordered=reordered, last_count=9))


def test_results_of_a_value_that_was_set_again_later():
    finding = found(STALE, SHADOWED)
    assert finding.severity == "note"
    assert finding.where == Where("train.ipynb, cell 4", 2, "<module>")
    assert finding.evidence == {"name": "lr", "cell": 4, "reads": 2}


def test_a_value_that_came_from_another_cell():
    assert found(SHADOWED).severity == "note"


def test_is_silent_where_cells_were_run_as_they_stand():
    assert found() is None


def test_is_not_applicable_without_numbers():
    with pytest.raises(NotApplicable):
        RULE.from_notebook(NotebookFacts("train.ipynb", 8))
