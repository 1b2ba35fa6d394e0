import dataclasses

from diagnostics.facts.notebook import CellPlace, GlobalRead, NotebookFacts
from diagnostics.facts.where import Where
from diagnostics.rules.reproducibility.function_reads_globals import FunctionReadsGlobals

RULE = FunctionReadsGlobals()
READ = GlobalRead(
    "evaluate", CellPlace(3, 3, 1), "model", (CellPlace(1, 1, 2),), ("other",), (CellPlace(6, 7, 1),)
)


def found(*reads):
    return RULE.from_notebook(NotebookFacts("train.ipynb", 8, 8, reads=reads))


def test_lists_the_functions_and_what_they_read():
    other = dataclasses.replace(READ, function="train", name="loader")
    finding = found(READ, dataclasses.replace(READ, name="loader"), other)
    assert finding.severity == "note"
    assert finding.where == Where("train.ipynb, cell 3", 1, "evaluate")
    assert finding.evidence == {"functions": {"evaluate": ["model", "loader"], "train": ["loader"]}}


def test_begins_with_what_a_loop_has_left_behind():
    changed = dataclasses.replace(
        READ,
        name="loader",
        bindings=(CellPlace(1, 1, 2), CellPlace(5, 5, 1)),
        kinds=("other", "other"),
        differs=True,
    )
    left = dataclasses.replace(READ, name="x", kinds=("loop variable",), leftover=True)
    assert found(changed).severity == "note"
    assert found(changed, left).severity == "note"


def test_of_many_functions_names_a_few():
    many = [dataclasses.replace(READ, function=f"f{n}") for n in range(8)]
    assert found(*many).severity == "note"


def test_is_silent_where_functions_are_given_what_they_use():
    assert found() is None
    assert found(dataclasses.replace(READ, changes_kind=True)) is None  # another rule's
